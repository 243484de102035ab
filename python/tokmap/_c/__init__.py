# SPDX-License-Identifier: Apache-2.0
"""The C library: its structs and functions, errors, locks, arguments."""
