# SPDX-License-Identifier: Apache-2.0
"""What a run was trained on, from its ledger."""
