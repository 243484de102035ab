# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site of the pages that pages.py has put together: make docs."""

project = "tokmap"
html_title = "tokmap"
root_doc = "index"
extensions = ["myst_parser"]
myst_heading_anchors = 4                        # by GitHub's rule, as the links in the pages expect
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "none"                     # of blocks that name none: drawings and outputs
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_use_index = html_show_copyright = html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "native"
