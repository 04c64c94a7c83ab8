"""The generator of the demo's data, which lies in flows/demo: its problems, what is planted in them, the attempts."""
