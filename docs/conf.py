"""How Sphinx makes the site of docs/: ``make docs``, without a network, warnings being errors."""

import json
import sys
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
matplotlib.use("Agg")

from pictures import missing_scripts  # noqa: E402

import epsilot  # noqa: E402

project = "epsilot"
author = "The epsilot developers"
release = version = epsilot.__version__
project_copyright = author

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "sphinx_copybutton",
    "formulas",
    "repository_links",
    "registry",
    "public_names",
    "trim_code",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates", "gallery"]
nitpicky = True
# The documentation of other packages is not available without a network; our names must resolve.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!epsilot).*"),
    (r"py:.*", r"epsilot\.(_types|problems|engine|geometry|files|distributed)\..*"),
]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "attrs_inline", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "drawn",
    "filename_pattern": r"\.py$",
    # API pages list the scripts that use a name.
    "backreferences_dir": "drawn/uses",
    "doc_module": ("epsilot",),
    "ignore_pattern": missing_scripts(HERE / "gallery"),
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "gallery_order.Order",
    "image_srcset": ["2x"],
    "thumbnail_size": (560, 360),
}

LOGO = "_static/logo.svg"
html_theme = "pydata_sphinx_theme"
html_title = "epsilot"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
# Excerpts of what a search found are fetched, which browsers refuse to pages that are files.
html_show_search_summary = True
html_js_files = ["search.js"]
html_favicon = "_static/logo.svg"
html_sidebars = {"**": ["site-nav.html"]}
VERSIONS = json.loads((HERE / "versions.json").read_text(encoding="utf-8"))
html_context = {"default_mode": "auto", "versions": VERSIONS}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["versions", "theme-switcher", "navbar-icon-links"],
    "icon_links": [
        {
            "name": "Repository",
            "url": "https://github.com/epsilot/epsilot",
            "icon": "fa-brands fa-github",
        }
    ],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": "epsilot", "image_light": LOGO, "image_dark": LOGO},
}
