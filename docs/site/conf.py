"""Sphinx's settings. `stage.py` lays out the folder it reads, `build.sh` runs both."""

import re
from pathlib import Path

import matmix

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "out" / "site-source"

project = "matmix"
author = "the matmix authors"
version = release = matmix.__version__
project_copyright = f"{author}, MIT or Apache-2.0"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["extra", "gallery/GALLERY_HEADER.rst"]
templates_path = [str(HERE / "_templates")]
default_role = "py:obj"

# Headings are linked to the way code hosts do it, and a fence of `math` is an equation, as it is there.
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
# From this folder, not from another machine.
mathjax_path = "../mathjax/tex-chtml.js"
mathjax3_config = {"chtml": {"displayAlign": "left", "scale": 0.92}, "options": {"enableMenu": False}}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "gallery"),
    "gallery_dirs": str(SOURCE / "gallery"),
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "parallel": 2,
    "min_reported_time": 0,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": (),
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = "matmix"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = [str(SOURCE / "extra")]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"install": [], "api": [], "gallery/index": []}
html_theme_options = {
    "logo": {"text": "matmix"},
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
}


def leave_out(app, what, name, obj, skip, options):
    """Members that scikit-learn or Python itself bring along: their documentation is theirs."""
    if re.fullmatch(r"set_\w+_request|_\w*|count|index", name):
        return True
    owner = getattr(getattr(obj, "fget", obj), "__module__", None)
    return True if isinstance(owner, str) and not owner.startswith("matmix") else None


def setup(app):
    app.connect("autodoc-skip-member", leave_out)
