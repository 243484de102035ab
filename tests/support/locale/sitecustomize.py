# SPDX-License-Identifier: Apache-2.0
"""For tests/base/test_locale.py: each Python process has the locale of its environment, as a C program that calls
setlocale. Python alone takes only the character set from it."""

import locale

locale.setlocale(locale.LC_ALL, "")
