"""From records to profiles: files, frames, databases and engines in; cells, and how many have which counts, out."""
