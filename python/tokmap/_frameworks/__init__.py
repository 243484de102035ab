# SPDX-License-Identifier: Apache-2.0
"""What the adapters for frameworks share."""
