# SPDX-License-Identifier: Apache-2.0
"""hf_trainer.py DATASET N_STEPS - the Trainer of transformers, which goes on where its last checkpoint says."""

import glob
import sys

import tokmap
import tokmap.huggingface
import transformers

dataset, n_steps = sys.argv[1], int(sys.argv[2])
data = tokmap.huggingface.IterableDataset(
    dataset, sequence_length=64, seed=1, windows="best_fit", outputs=["inputs", "labels", "position_ids"],
    rows=tokmap.Rows(mask_labels=True), reading=tokmap.Reading(look_ahead=4))
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=tokmap.open(dataset).vocab_size or 2**16, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=2))
arguments = transformers.TrainingArguments(
    "run", max_steps=n_steps, per_device_train_batch_size=4, save_steps=2, logging_steps=1, report_to="none",
    accelerator_config={"dispatch_batches": False})
trainer = transformers.Trainer(
    model, arguments, train_dataset=data, data_collator=transformers.default_data_collator,
    callbacks=[tokmap.huggingface.Callback(data)])
trainer.train(resume_from_checkpoint=len(glob.glob("run/checkpoint-*")) > 0)
