"""Applications of transport: domain adaptation and colour transfer."""
