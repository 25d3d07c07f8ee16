"""What may be done to a prompt before it is tokenised: named, optional steps that say what they changed."""
