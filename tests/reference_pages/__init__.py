"""The generated pages of docs/reference: commands, settings, records and drop reasons, from the code itself."""
