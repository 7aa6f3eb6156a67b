"""Other people's result files become run folders: one readable file per format.

`detect` looks at a file's content and names its format; the format's module reads it into drafts, which hold what the
file says and nothing else; `plan` adds what a person answered, checks it and finds duplicates; `keep` writes folders.
"""
