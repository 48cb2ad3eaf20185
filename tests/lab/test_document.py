from epsilot_lab.document import (
    Claim,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    markdown_row,
    to_markdown,
)
from epsilot_lab.judging import JudgedClaim
from epsilot_lab.report import Page, publish_all, to_html

BLOCKS = [
    Paragraph("`code` and <tags> and **strength**"),
    Command("epsilot bench --quick"),
    Heading("A part & more"),
    Table(("a", "b"), (("1 | 2", "holds"), ("3", "does not hold")), "A caption."),
    Picture("one.svg", "What it shows."),
]


def test_blocks_become_markdown():
    text = to_markdown("Title", BLOCKS)
    assert text.startswith("# Title\n\n`code`")
    assert "```sh\nepsilot bench --quick\n```" in text
    assert "## A part & more" in text
    assert "A caption.\n\n| a | b |\n| --- | --- |\n| 1 \\| 2 | holds |" in text
    assert "![What it shows.](one.svg)" in text


def test_blocks_become_one_page_that_asks_for_nothing(tmp_path):
    (tmp_path / "one.svg").write_text("<svg/>")
    page = to_html("Title <1>", BLOCKS, tmp_path)
    assert "<title>Title &lt;1&gt;</title>" in page
    assert "<code>code</code> and &lt;tags&gt; and <strong>strength</strong>" in page
    assert '<li><a href="#a-part-more">A part &amp; more</a></li>' in page
    assert '<td class="yes">holds</td>' in page
    assert '<td class="no">does not hold</td>' in page
    assert "data:image/svg+xml;base64,PHN2Zy8+" in page
    assert "http:" not in page
    assert "https:" not in page


def test_a_bar_in_a_cell_ends_no_cell():
    assert markdown_row(["a|b", "c"]) == r"| a\|b | c |"


def test_pages_become_one_report_with_every_claim_once(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "one.svg").write_text("<svg/>")
    tests = tuple(Claim("c", f"on {k}", "1", "holds") for k in (1, 2))
    statements = (
        JudgedClaim("first", "Figure 1", tests),
        JudgedClaim("second", "Table 1", tests[:0]),
    )
    pages = {"x": Page("A page", tuple(BLOCKS), statements[:1]), "y": Page("B", (), statements[1:])}
    publish_all(tmp_path, "All", pages)
    listed = (tmp_path / "claims.md").read_text()
    assert "1 of 2 claims of the paper hold in every test. Not measured yet (1): second." in listed
    assert "| first | Figure 1 | holds: 2 | holds |" in listed
    page = (tmp_path / "report.html").read_text()
    assert '<h2 id="a-page">A page</h2>' in page
    assert "<h3>A part &amp; more</h3>" in page
    assert "data:image/svg+xml;base64,PHN2Zy8+" in page
