"""The intermediate representation: what a definition says, as small immutable records without behaviour."""
