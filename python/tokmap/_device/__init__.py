# SPDX-License-Identifier: Apache-2.0
"""Batches on a GPU, and the exchange of arrays."""
