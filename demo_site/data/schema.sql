CREATE TABLE books (
    slug TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    author TEXT NOT NULL,
    author_sort TEXT NOT NULL,
    year INTEGER NOT NULL,
    language TEXT NOT NULL,
    translator TEXT,
    subjects TEXT NOT NULL,
    opening_line TEXT NOT NULL,
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    stock INTEGER NOT NULL CHECK (stock >= 0),
    front_table INTEGER NOT NULL,
    title_words TEXT NOT NULL,
    author_words TEXT NOT NULL,
    subject_words TEXT NOT NULL
);

CREATE TABLE accounts (
    account_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    salt BLOB NOT NULL,
    password_hash BLOB NOT NULL
);

CREATE TABLE basket_lines (
    basket_id TEXT NOT NULL,
    slug TEXT NOT NULL REFERENCES books,
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (basket_id, slug)
);

CREATE TABLE orders (
    order_id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts,
    placed_at TEXT NOT NULL,
    status TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL
);

CREATE TABLE order_lines (
    order_id TEXT NOT NULL REFERENCES orders,
    slug TEXT NOT NULL REFERENCES books,
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    price_cents INTEGER NOT NULL,
    PRIMARY KEY (order_id, slug)
);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
