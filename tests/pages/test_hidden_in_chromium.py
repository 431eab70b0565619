"""What is hidden, beside what Chromium shows: each trick is laid out there and looked at where its text should be."""

from typing import Any

from tests.pages.tricks import IS_SEEN, TEXT

SEEN = """([pages, text]) => pages.map(page => {
    document.open();
    document.write(page);
    document.close();
    const holders = [], look = root => {
        for (const one of root.querySelectorAll('*')) {
            const own = [...one.childNodes].filter(node => node.nodeType == 3).map(node => node.data).join('');
            if (own.includes(text)) holders.push(one);
            if (one.shadowRoot) look(one.shadowRoot);
        }
    };
    look(document);
    return holders.some(one => {
        const wanted = {opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true};
        if (!one.checkVisibility(wanted)) return false;
        if (parseFloat(getComputedStyle(one).fontSize) == 0) return false;
        for (let around = one; around; around = around.parentElement ?? around.getRootNode().host)
            if (getComputedStyle(around).filter == 'opacity(0)') return false;
        const range = document.createRange();
        range.selectNodeContents(one);
        return [...range.getClientRects()].some(({left, top, width, height}) => {
            const hit = one.getRootNode().elementFromPoint(left + Math.min(width / 2, 40), top + height / 2);
            return width > 0 && height > 0 && hit && (one == hit || one.contains(hit));
        });
    });
})"""
"""Whether the text is seen on each of some pages, which are written into one document: to load them takes long."""


def test_each_trick_hides_its_text_in_chromium_or_shows_it(tab: Any) -> None:
    seen = tab.evaluate(SEEN, [list(IS_SEEN), TEXT])
    wrong = [
        f"{'shown' if is_seen else 'hidden'}: {page}"
        for (page, wanted), is_seen in zip(IS_SEEN.items(), seen, strict=True)
        if is_seen != wanted
    ]
    assert not wrong, "\n".join(wrong)
