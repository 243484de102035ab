# SPDX-License-Identifier: Apache-2.0
"""The commands in Python, and what a notebook shows."""
