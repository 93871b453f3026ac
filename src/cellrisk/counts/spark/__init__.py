"""Tables on Spark: files, tables and frames that it reads, in a session that is given, found or opened."""
