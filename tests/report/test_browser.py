"""The page in a real browser: nothing fetched, nothing run, readable by day and night, on a phone and on paper."""

import os
import re
import shutil

import pytest

import datassay as da

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}

pytestmark = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("CI"), reason="there is no Chromium on this machine (make test installs it)"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pages")
    da.report(da.census(600), quick=True, truth="label_error").save(made / "census.html")
    da.report(da.census(300), sections=["worth"]).save(made / "curve.html")  # quickly, nothing is left out to see
    frame = da.census(200, seed=2).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["occupation"] = frame["occupation"].replace({"care": "<script>document.title='hit'</script>"})
    frame["income"] = frame["income"].replace({"high": "<img src=x onerror=\"document.title='hit'\">"})
    frame["id"] = [f"<svg onload=document.title='hit'>{i}" for i in range(len(frame))]
    long = "</style><script>alert(1)</script>" + "no_place_to_break_a_line" * 3  # it identifies people most
    frame = frame.rename(columns={"age": long, "hours": "javascript:alert(2)"})
    da.report(frame, "income", id="id", quick=True, show_rows=True).save(made / "mischief.html")
    return made


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    assert BROWSER is not None, "make test installs Chromium, and there is none"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page that was opened, and everything that happened on the way."""

    def __init__(self, chromium, file, size="desktop", **settings):
        width, height = SIZES[size]
        self.context = chromium.new_context(viewport={"width": width, "height": height}, **settings)
        self.page = self.context.new_page()
        self.said, self.asked, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(file.as_uri())
        self.page.wait_for_load_state("networkidle")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


def rgb(text):
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


def luminance(colour):
    """Relative luminance of WCAG 2.1."""
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["census", "mischief"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_opens_without_a_word_and_asks_for_nothing(chromium, folder, name, size):
    with Visit(chromium, folder / f"{name}.html", size) as visit:
        assert visit.said == []
        assert visit.asked == [(folder / f"{name}.html").as_uri()]
        assert visit.dialogs == []


@pytest.mark.parametrize("size", SIZES)
def test_figures_are_seen_and_their_text_is_large_enough(chromium, folder, size):
    with Visit(chromium, folder / "census.html", size) as visit:
        figures = visit.page.query_selector_all("figure svg")
        assert len(figures) >= 7
        for figure in figures:
            box = figure.bounding_box()
            assert box["width"] > 300
            assert box["height"] > 100
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= SIZES[size][0]
        heights = visit.page.evaluate(
            "[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect()).filter(b => b.width > 0)"
            ".map(b => Math.min(b.height, b.width + b.height))"
        )
        assert min(heights) >= 8
        marks = "figure svg path, figure svg use"
        assert visit.page.evaluate(f"[...document.querySelectorAll('{marks}')].length") > 100


@pytest.mark.parametrize("name", ["census", "mischief"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_sticks_out_of_the_screen(chromium, folder, name, size):
    with Visit(chromium, folder / f"{name}.html", size) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


def test_the_table_of_contents_leads_to_every_section(chromium, folder):
    with Visit(chromium, folder / "census.html", reduced_motion="reduce") as visit:
        links = visit.page.query_selector_all("nav a")
        assert len(links) == 8
        for link in links:
            link.click()
            target = link.get_attribute("href")
            assert visit.page.evaluate("location.hash") == target
            visit.page.wait_for_timeout(50)
            top, end = visit.page.evaluate(
                f"[document.querySelector('{target}').getBoundingClientRect().top,"
                " innerHeight + scrollY >= document.documentElement.scrollHeight - 2]"
            )
            assert abs(top) < 60 or (end and top < SIZES["desktop"][1])


def test_a_number_leads_to_its_method(chromium, folder):
    with Visit(chromium, folder / "census.html", reduced_motion="reduce") as visit:
        link = visit.page.query_selector("#found .card a.n")
        link.click()
        assert visit.page.evaluate("location.hash") == "#method-uniqueness-shapley"
        assert "Shapley" in visit.page.inner_text("#method-uniqueness-shapley h3")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_figures_can_be_read_by_day_and_night(chromium, folder, scheme):
    with Visit(chromium, folder / "census.html", color_scheme=scheme) as visit:
        paper = rgb(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert (luminance(paper) < 0.1) == (scheme == "dark")
        for what, property in (
            ("body", "color"), (".soft", "color"), ("figcaption", "color"), ("a", "color"), ("figure svg text", "fill"),
        ):  # fmt: skip
            ink = rgb(visit.page.evaluate(f"getComputedStyle(document.querySelector('{what}')).{property}"))
            assert contrast(ink, paper) > 4.5, (what, ink, paper)
        # Lines and bars: 3 to 1, as for graphics.
        used = visit.page.evaluate(
            "[...document.querySelectorAll('figure svg [style*=\"var(--\"]')].map(e => [getComputedStyle(e).fill,"
            " getComputedStyle(e).stroke]).flat().filter(c => c.startsWith('rgb'))"
        )
        band = "getComputedStyle(document.documentElement).getPropertyValue('--band').trim()"
        band = [int(visit.page.evaluate(band)[at : at + 2], 16) for at in (1, 3, 5)]
        for colour in set(used):
            if rgb(colour) not in ([0, 0, 0], band):
                assert contrast(rgb(colour), paper) > 2, colour


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_line_can_be_seen_on_the_band_behind_it(chromium, folder, scheme):
    with Visit(chromium, folder / "curve.html", color_scheme=scheme) as visit:
        curve = "[...document.querySelectorAll('figure')].find(f => f.innerText.includes('least valuable tenth'))"
        painted = visit.page.evaluate(
            f"[...{curve}.querySelectorAll('svg path[style], svg use[style]')].map(e => getComputedStyle(e)).map(s => [s.fill, s.stroke])"
        )
        paper = rgb(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        bands = {fill for fill, stroke in painted if stroke == "none" and fill.startswith("rgb")}
        lines = {stroke for fill, stroke in painted if fill == "none" and stroke.startswith("rgb")}
        ink = visit.page.evaluate("getComputedStyle(document.body).color")
        drawn = {one for one in lines if one != ink}
        assert bands
        assert len(drawn) == 2  # by value, and at random
        for band in bands:
            assert contrast(rgb(band), paper) < 3, band
            assert all(contrast(rgb(line), rgb(band)) > 3 for line in drawn), (drawn, band)


def test_the_theme_can_be_chosen(chromium, folder):
    with Visit(chromium, folder / "census.html", color_scheme="light") as visit:
        paper = "luminance => getComputedStyle(document.body).backgroundColor"
        visit.page.check("#dark")
        assert luminance(rgb(visit.page.evaluate(paper))) < 0.1
        visit.page.check("#light")
        assert luminance(rgb(visit.page.evaluate(paper))) > 0.9
    with Visit(chromium, folder / "census.html", color_scheme="dark") as visit:
        visit.page.check("#light")
        assert luminance(rgb(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))) > 0.9


def test_a_malicious_cell_does_nothing(chromium, folder):
    with Visit(chromium, folder / "mischief.html") as visit:
        assert visit.page.evaluate("document.querySelectorAll('script, img, iframe, [onload], [onerror]').length") == 0
        assert "hit" not in visit.page.title()
        assert "<script>document.title='hit'</script>" in visit.page.inner_text("body")
        # Even a script that got in would not run: the page forbids it to itself.
        visit.page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = \"document.title = 'hit'\";"
            " document.body.append(s); }"
        )
        assert "hit" not in visit.page.title()


def test_it_prints(chromium, folder, tmp_path):
    with Visit(chromium, folder / "census.html", color_scheme="dark") as visit:
        file = tmp_path / "page.pdf"
        visit.page.pdf(path=file, format="A4")
        assert file.read_bytes()[:5] == b"%PDF-"
        visit.page.emulate_media(media="print")
        assert luminance(rgb(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))) > 0.9
        assert visit.page.evaluate("getComputedStyle(document.querySelector('fieldset')).display") == "none"


def test_rows_fit_on_paper(chromium, folder):
    with Visit(chromium, folder / "mischief.html") as visit:
        visit.page.emulate_media(media="print")
        visit.page.set_viewport_size({"width": 718, "height": 1046})  # A4 within its margins
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 718
