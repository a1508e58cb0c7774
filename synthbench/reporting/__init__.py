"""Turn tracked results into tables, figures and pages."""
