# SPDX-License-Identifier: BSD-3-Clause
"""The site, as a reader's browser shows it: no warning, no dead link, no defect of any page.

The folder is that of the environment variable SITE; Sphinx writes it before the first test. The
browser is a Chromium; without one, only the tests that read the files run.
"""

import json
import os
import posixpath
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import itertools

import browser

DOCS = Path(__file__).parents[2] / "docs"
NOT_READ = {"genindex.html", "search.html"}  # what Sphinx adds
# Findings of axe that lie in the theme, and not in what we write.
OF_THE_THEME = {"region", "landmark-unique"}


@pytest.fixture(scope="session")
def built():
    """What Sphinx said, with every warning an error, and the folder that it wrote."""
    out = Path(os.environ["SITE"])
    # All pages are written, because each one names its neighbors.
    command = [sys.executable, "-m", "sphinx", "-q", "-a", "-W", "-n", "--keep-going"]
    command += ["-d", str(out.with_name("doctrees")), "-b", "html", str(DOCS), str(out)]
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return out, done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="session")
def site(built):
    return built[0]


def pages_of(site):
    files = sorted(site.rglob("*.html"))
    return [page for file in files if (page := file.relative_to(site).as_posix()) not in NOT_READ]


def test_the_site_builds_without_a_warning(built):
    _, status, said = built
    assert status == 0, said


def test_every_page_of_the_book_is_there(site):
    written = {page.removesuffix(".html") for page in pages_of(site)}
    assert written == {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")}


def onward(site, page):
    """What is said at the end of a page of where each way goes on."""
    text = (site / page).read_text("utf-8")
    return re.findall(r'<p class="reading">Next for (.*?): <a [^>]*href="([^"]*)"', text)


def test_a_page_leads_to_the_next_one_of_each_way_at_its_end(site):
    limits = [("the curious", "../one_call.html"), ("the vendor", "../driver.html")]
    assert onward(site, "first/limits.html") == limits


def test_ways_that_go_on_together_share_a_line(site):
    assert onward(site, "first/guard.html") == [("the curious and the vendor", "memory.html")]


def test_what_changed_between_two_files_is_shown_without_their_paths(site):
    text = (site / "yours/doctor.html").read_text("utf-8")
    changed = re.findall(r"highlight-udiff.*?<pre>(.*?)</pre>", text, re.DOTALL)
    assert changed and all("@@ -" in block for block in changed)
    assert str(DOCS.parent) not in text


class Links(HTMLParser):
    """The anchors of a page, and what it links to or loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.targets, self.loaded = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.targets.add(found["href"])
        for name in ("src", "data"):
            if tag in ("img", "script", "object", "iframe") and found.get(name):
                self.loaded.add(found[name])
        if tag == "link" and found.get("rel") == "stylesheet":
            self.loaded.add(found["href"])


def test_every_link_and_every_anchor_leads_somewhere(site):
    read = {file: Links((site / file).read_text("utf-8")) for file in pages_of(site)}
    pictures = [file.relative_to(site).as_posix() for file in site.rglob("*.svg")]
    # A picture is an object of its own, so its links start from where it lies.
    read |= {file: Links((site / file).read_text("utf-8")) for file in pictures}
    wrong = []
    for page, links in read.items():
        for target in links.targets | links.loaded:
            parts = urlsplit(target)
            if parts.scheme or target.startswith("//"):
                continue
            path = unquote(parts.path)
            file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
            file = file if path else page
            anchors = read[file].anchors if file in read else set()
            if not (site / file).is_file() or (
                file in read and parts.fragment not in {"", *anchors}
            ):
                wrong.append(f"{page}: {target}")
    assert wrong == []


# What a browser sees.


@pytest.fixture(scope="session")
def tab(site):
    if not browser.find():
        pytest.skip(f"There is no Chromium: none of {', '.join(browser.NAMES)} is a program here.")
    with browser.Browser() as chromium:
        yield chromium.page()


# Each word of a listing is an element; that they are legible is asked on one page only.
LISTINGS = ("device/memory.html",)
AXE = """axe.run({exclude: [%s]}, {resultTypes: ["violations"]%s}).then(found => JSON.stringify(
  found.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v =>
    [v.id, v.nodes.map(n => n.target.join(" ")).slice(0, 3)])))"""
FACTS = """JSON.stringify({
  width: document.documentElement.scrollWidth,
  headings: [...document.querySelectorAll("article h1, article h2, article h3, article h4")].map(h => +h.tagName[1]),
  unnamed: [...document.querySelectorAll("article img, article object, article svg[role=img]")]
    .filter(e => !(e.alt || e.textContent || e.getAttribute("aria-label") || "").trim()).length,
  cut: [...document.querySelectorAll(".highlight .marker")].filter(
    e => e.getBoundingClientRect().right > e.closest("pre").getBoundingClientRect().right).length,
  background: getComputedStyle(document.body).backgroundColor,
  next: document.querySelector(".related-pages a.next-page")?.getAttribute("href") ?? "",
})"""

# Listings of at most 100 columns that are scrolled, and options that are broken behind a hyphen.
CODE = """JSON.stringify({
  scrolled: [...document.querySelectorAll("article .highlight pre")].filter(pre => {
    const code = pre.cloneNode(true);
    code.querySelectorAll(".linenos, .marker").forEach(e => e.remove());
    const fits = code.textContent.split("\\n").every(line => line.length <= 100);
    return fits && pre.scrollWidth > pre.clientWidth; }).length,
  broken: [...document.querySelectorAll("article .pre")].filter(e =>
    /^--\\w{1,12}$/.test(e.textContent) && e.getClientRects().length > 1).length,
})"""


@pytest.fixture(scope="session")
def visits(site, tab):
    """What each page asked for, said and looks like: on a phone, and in the dark."""
    axe = Path(find_spec("axe_core_python").origin).with_name("axe.min.js").read_text("utf-8")
    found = {}
    for page in pages_of(site):
        tab.resize(360, 800)
        tab.prefer("light")
        requested, said = tab.open((site / page).as_uri())
        phone = json.loads(tab.evaluate(FACTS))
        tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        phone["open width"] = json.loads(tab.evaluate(FACTS))["width"]
        tab.resize(1100)
        tablet = tab.evaluate("document.documentElement.scrollWidth")
        tab.resize(1400)
        code = json.loads(tab.evaluate(CODE))
        tab.resize(1300)
        tab.evaluate(axe)
        left_out = "" if page in LISTINGS else '[".highlight"]'
        findings = json.loads(tab.evaluate(AXE % (left_out, "")))
        tab.prefer("dark")
        dark = json.loads(tab.evaluate(FACTS))
        if "/" not in page or page in LISTINGS:  # The pages of sections have the same colors.
            contrast = ', runOnly: ["color-contrast"]'
            findings += json.loads(tab.evaluate(AXE % (left_out, contrast)))
        found[page] = {
            "requested": requested, "said": said, "phone": phone, "dark": dark, "axe": findings, "tablet": tablet,
            "code": code,
        }  # fmt: skip
    return found


def test_no_page_asks_another_host_for_anything(visits):
    schemes = {page: {urlsplit(u).scheme for u in v["requested"]} for page, v in visits.items()}
    assert {page: found for page, found in schemes.items() if found - {"file", "data"}} == {}


def test_no_page_complains_in_the_console(visits):
    assert {page: visit["said"] for page, visit in visits.items() if visit["said"]} == {}


def test_no_page_scrolls_sideways_on_a_phone(visits):
    for width in ("width", "open width"):
        wide = {page: visit["phone"][width] for page, visit in visits.items()}
        assert {page: pixels for page, pixels in wide.items() if pixels > 360} == {}


def test_no_page_scrolls_sideways_on_a_tablet(visits):
    assert {page: visit["tablet"] for page, visit in visits.items() if visit["tablet"] > 1100} == {}


@pytest.mark.parametrize("defect", ["scrolled", "broken"])
def test_code_of_100_columns_fits_a_desk_and_an_option_stays_whole(visits, defect):
    found = {page: visit["code"][defect] for page, visit in visits.items()}
    assert {page: count for page, count in found.items() if count} == {}


def test_the_sentence_of_a_marker_is_read_without_scrolling(visits):
    cut = {page: visit["phone"]["cut"] for page, visit in visits.items()}
    assert {page: count for page, count in cut.items() if count} == {}


def test_a_heading_is_at_most_one_level_below_the_one_before(visits):
    for page, visit in visits.items():
        levels = visit["phone"]["headings"]
        assert levels[0] == 1, page
        assert levels.count(1) == 1, page
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), (page, levels)


def test_every_picture_has_a_text_in_its_place(visits):
    assert {page for page, visit in visits.items() if visit["phone"]["unnamed"]} == set()


def test_every_page_has_a_dark_form(visits):
    for page, visit in visits.items():
        for form, is_dark in (("phone", False), ("dark", True)):
            words = visit[form]["background"].strip("rgba()").split(",")
            assert (sum(map(int, words[:3])) < 200) == is_dark, (page, form, words)


def test_axe_finds_nothing_serious(visits):
    serious = {
        page: [finding for finding in visit["axe"] if finding[0] not in OF_THE_THEME]
        for page, visit in visits.items()
    }
    assert {page: findings for page, findings in serious.items() if findings} == {}


def test_the_pages_form_one_row(visits):
    page, seen = "index.html", []
    while page and page not in seen:
        seen.append(page)
        following = visits[page]["phone"]["next"]
        page = (
            posixpath.normpath(posixpath.join(posixpath.dirname(page), following))
            if following
            else ""
        )
    assert sorted(seen) == sorted(visits)


def test_a_program_is_shown_line_by_line(site, tab):
    tab.open((site / "device/memory.html").as_uri())
    shown = (
        "[...document.querySelectorAll('.steps .step:not([hidden]) pre')].map(e => e.textContent)"
    )
    press = "document.querySelectorAll('.steps .buttons button')[%d].click()"
    assert tab.evaluate(f"{shown}.join()") == "side = torch.openreg.Stream()"
    tab.evaluate(press % 1)
    assert tab.evaluate(f"{shown}.join()") == 'x = torch.ones(256, device="openreg")'
    tab.evaluate(press % 0)
    assert tab.evaluate(f"{shown}.join()") == "side = torch.openreg.Stream()"
    assert tab.evaluate("document.querySelector('.steps .buttons span').textContent") == "1 of 9"


def test_a_search_finds_a_term(site, tab):
    tab.open((site / "search.html").as_uri() + "?q=size+class")
    found = tab.evaluate(
        """new Promise(done => { const look = () => {
             const links = [...document.querySelectorAll("#search-results li a")].map(a => a.textContent);
             links.some(text => text.includes("Memory")) ? done(links) : setTimeout(look, 100); };
           look(); setTimeout(() => done([]), 30000); })"""
    )
    assert found


def test_an_arrow_key_turns_the_page(site, tab):
    tab.open((site / "index.html").as_uri())
    following = tab.evaluate("document.querySelector('link[rel=next]').href")
    for kind in ("keyDown", "keyUp"):
        tab.send("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight",
                 windowsVirtualKeyCode=39)  # fmt: skip
    tab.browser.wait_for("Page.loadEventFired")
    assert tab.evaluate("location.href") == following != (site / "index.html").as_uri()


def test_what_is_copied_is_the_code_without_numbers(site, tab):
    tab.open((site / "device/memory.html").as_uri())
    copied = tab.evaluate(
        """(() => { const block = document.querySelector(".notes").previousElementSibling;
             const button = block.querySelector("button.copy");
             button.click(); return button.dataset.copied; })()"""
    )
    source = DOCS.parent / "chapters/device/memory/cache.cpp"
    assert copied in source.read_text("utf-8").replace("\r", "")
    assert copied.startswith("// [device.cache.allocate]")


def test_what_is_copied_from_a_console_is_the_command(site, tab):
    tab.open((site / "introduction.html").as_uri())
    copied = tab.evaluate(
        """(() => { const button = document.querySelector(".highlight-console button.copy");
             button.click(); return button.dataset.copied; })()"""
    )
    assert copied.startswith("./dev build hooks\n")


def test_a_note_says_on_hover_what_the_list_below_says(site, tab):
    tab.open((site / "device/memory.html").as_uri())
    pairs = tab.evaluate(
        """[...document.querySelectorAll("a.note")].map(a =>
             [a.dataset.text, document.querySelector(a.getAttribute("href")).textContent])"""
    )
    assert pairs
    assert all(shown.split() == below.split() for shown, below in pairs)


TERM = "article a.term"
SHOWN = """(() => { const shown = document.getElementById("shown"), box = shown.getBoundingClientRect();
  return [shown.checkVisibility() ? shown.textContent : "", box.left >= 0 && box.right <= innerWidth]; })()"""


def definition(site, page):
    """The definition of the first term of a page, in the words of the glossary."""
    href = re.search(r'<a class="term [^"]*" href="[^"#]*#([^"]+)"', (site / page).read_text())[1]
    found = (site / "glossary.html").read_text()
    text = re.search(rf'<dt id="{href}">.*?<dd>(.*?)</dd>', found, re.DOTALL)[1]
    return " ".join(unescape(re.sub("<[^>]+>", "", text)).split())


@pytest.mark.parametrize("width", [1280, 360])
def test_a_term_is_defined_where_the_mouse_or_the_focus_is(site, tab, width):
    words = definition(site, "operators/by_hand.html")
    tab.resize(width, 800)
    tab.open((site / "operators/by_hand.html").as_uri())
    tab.evaluate(
        f"document.querySelector('{TERM}').scrollIntoView({{block: 'center', behavior: 'instant'}})"
    )
    box = f"document.querySelector('{TERM}').getClientRects()[0]"
    x, y = tab.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
    # The page reports its scrolling with its next frame, and that would hide the text.
    frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    tab.evaluate(frame)
    tab.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tab.evaluate(frame)
    assert tab.evaluate(SHOWN) == [words, True]
    tab.send("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape")
    assert tab.evaluate(SHOWN)[0] == ""
    tab.evaluate(f"document.querySelector('{TERM}').focus({{preventScroll: true}})")
    assert tab.evaluate(SHOWN) == [words, True]


def test_without_a_script_a_term_has_its_definition_as_a_title(site):
    page = (site / "operators/by_hand.html").read_text("utf-8")
    title = re.search(r'<a class="term [^"]*" href="[^"]*" title="([^"]*)"', page)[1]
    assert unescape(title) == definition(site, "operators/by_hand.html")


def test_an_answer_opens_without_a_script(site, tab):
    tab.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open((site / "graphs.html").as_uri())
        tab.send("Emulation.setScriptExecutionDisabled", value=False)
        opened = tab.evaluate(
            """(() => { const answer = document.querySelector("details.answer");
                 const before = answer.scrollHeight; answer.querySelector("summary").click();
                 return answer.open && answer.scrollHeight > before; })()"""
        )
    finally:
        tab.send("Emulation.setScriptExecutionDisabled", value=False)
    assert opened


def test_the_checklist_keeps_its_ticks(site, tab):
    page = (site / "your_own_backend.html").as_uri()
    boxes = "document.querySelectorAll('input.task-list-item-checkbox')"
    tab.open(page)
    count = tab.evaluate(f"{boxes}.length")
    assert count > 5
    tab.evaluate(f"{boxes}[1].click()")
    tab.open(page)
    ticked = [n == 1 for n in range(count)]
    assert tab.evaluate(f"[...{boxes}].map(box => box.checked)") == ticked
    tab.evaluate(f"{boxes}[1].click()")
    tab.open(page)
    assert not tab.evaluate(f"[...{boxes}].some(box => box.checked)")
