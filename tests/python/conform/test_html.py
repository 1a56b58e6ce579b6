"""The card as a page: one file without network, whose table a browser fills."""

import re
from html.parser import HTMLParser

from cresset.conform.card import Card, Result
from cresset.conform.html import card_html

VOID = {"meta", "input", "br", "link", "img"}


class Outline(HTMLParser):
    """Checks that elements close in order, and collects what the page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.outside, self.text = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.outside += [v for k, v in attributes if k in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def card():
    made = Card("chip:0", states={"relu": "kernel", "add.Tensor": "fallback"})
    made.results = [Result("relu", "forward", "float32", "wrong", "a < b & </script><b>", "T(3)"), Result("relu", "backward", "float32", "pass"),
                    Result("add.Tensor", "forward", "float32", "pass"), Result("add.Tensor", "forward", "int64", "skip", "no int64")]
    return made


def test_page_is_whole():
    page = Outline()
    page.feed(card_html(card()))
    assert page.open == [] and page.outside == [] and page.seen.count("script") == 1
    assert "http" not in card_html(card())
    assert "chip:0: 66.7 %" in page.text and "2 of 3 checks of 2 operators give the CPU's answer; 1 skipped." in page.text


def test_page_in_a_browser(tmp_path, open_page):
    file = tmp_path / "card.html"
    file.write_text(card_html(card()))
    document = open_page(file)
    body = re.search(r'id="operators">.*?<tbody>(.*)</tbody>', document, re.S).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    assert len(rows) == 2 and "2 of 2 operators" in document
    assert "<code>relu</code>" in rows[0] and "with a kernel" in rows[0]
    assert 'class="chip wrong"' in rows[0] and 'class="chip pass"' in rows[0] and 'class="chip skip"' in rows[1]
    assert "<b>" not in rows[0]


def test_command_writes_it(conform, tmp_path):
    conform("--ops", "^relu$", "--dtypes", "float32", "--html", "out.html")
    assert conform.status == 0
    page = Outline()
    page.feed((tmp_path / "out.html").read_text())
    assert page.open == [] and "Next operators to write" in page.text and "resnet18" in page.text
