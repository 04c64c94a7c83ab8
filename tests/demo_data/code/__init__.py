"""The generator of the code demo's data: tasks, planted faults, attempts."""
