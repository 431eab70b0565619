"""What a page says of the state of its controls, for an agent that sees no colours: chosen, open, disabled."""

import pytest

from awp_publish.pages.markdown import write_markdown
from awp_publish.pages.som import compile_som

URL = "https://shop.example/shirt"
WRITTEN = {
    "<button aria-pressed=true>Bold</button>": "[button: Bold (pressed)]",
    "<button aria-pressed=false>Bold</button>": "[button: Bold]",
    "<button role=tab aria-selected=true>Care</button>": "[button: Care (selected)]",
    "<div role=tab aria-selected=' TRUE '>Care</div>": "[button: Care (selected)]",
    "<button aria-expanded=true disabled>Sizes</button>": "[button: Sizes (expanded, disabled)]",
    "<button aria-disabled=true>Buy</button>": "[button: Buy (disabled)]",
    "<button role=switch aria-checked=true aria-label=Active></button>": "[x] Active",
    "<button role=radio aria-checked=true>S</button>": "(x) S",
    "<button role=radio disabled>L</button>": "( ) L (disabled)",
    "<div role=checkbox aria-disabled=true>Gift</div>": "[ ] Gift (disabled)",
    "<label><input type=checkbox name=terms required> I agree</label>": "[ ] `terms` (required) I agree",
    "<label><input type=radio name=size disabled checked> XL</label>": "(x) `size` (disabled) XL",
    "<div inert><button>Order</button></div>": "[button: Order (disabled)]",
    "<fieldset disabled><input name=code><button>Apply</button></fieldset>": (
        "[text field `code`, disabled] [button: Apply (disabled)]"
    ),
    "<fieldset disabled><legend>Gift <button>Unlock</button></legend></fieldset>": "**Gift [button: Unlock]**",
    "<fieldset disabled><fieldset><button>In</button></fieldset></fieldset><button>Out</button>": (
        "[button: In (disabled)]\n\n[button: Out]"
    ),
    "<div inert><fieldset disabled><legend><button>Both</button></legend></fieldset></div>": (
        "**[button: Both (disabled)]**"
    ),
    "<fieldset disabled><legend>A</legend><div><legend><button>B</button></legend></div></fieldset>": (
        "**A**\n\n**[button: B (disabled)]**"
    ),
}


@pytest.mark.parametrize("html", WRITTEN)
def test_a_control_is_written_with_its_state(html: str) -> None:
    assert write_markdown(html, URL) == f"{WRITTEN[html]}\n"


def test_controls_in_the_first_legend_of_a_disabled_fieldset_are_enabled() -> None:
    legends = "<legend><button>Unlock</button></legend><legend><button>Other</button></legend>"
    (region,) = compile_som(f"<fieldset disabled>{legends}<input name=a></fieldset>", URL).document["regions"]
    disabled = {
        element["text"]: "disabled" in element["attrs"] for element in region["elements"] if element["role"] == "button"
    }
    assert disabled == {"Unlock": False, "Other": True}
    inner = f"<fieldset disabled><fieldset disabled>{legends}</fieldset></fieldset>"
    (region,) = compile_som(inner, URL).document["regions"]
    assert all("disabled" in element["attrs"] for element in region["elements"])
