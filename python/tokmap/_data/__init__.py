# SPDX-License-Identifier: Apache-2.0
"""What is in a dataset, and what writes one."""
