"""Fast tests of single modules, laid out as the library is."""
