"""LoRA adapters for the agents of prime-agents, trained with PEFT and TRL and exported to GGUF."""
