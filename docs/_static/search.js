// Excerpts are fetched from pages, which browsers refuse where pages are files.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
