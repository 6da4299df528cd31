"""The description of a study: data, learners, design, evaluation."""
