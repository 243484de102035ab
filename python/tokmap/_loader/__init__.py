# SPDX-License-Identifier: Apache-2.0
"""The loader, from its options to its batches, and the files that it writes of a run."""
