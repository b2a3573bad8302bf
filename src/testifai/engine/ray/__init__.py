"""Work on the nodes of a Ray cluster: cut into tasks, measured by actors that hold the subject, handed over here."""
