"""Models of loss, fading, visibility, mobility, handover and link budget."""
