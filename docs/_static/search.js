// Excerpts are fetched from pages, which browsers refuse where pages are files.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// Excerpts show the text of a page, without the names of the pages above and beside it.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const toText = Search.htmlToText;
  Search.htmlToText = (content, anchor) => {
    const page = new DOMParser().parseFromString(content, "text/html");
    const around = ".bd-header-article, .bd-sidebar-secondary, .prev-next-area, .sphx-glr-download-link-note";
    page.querySelectorAll(`${around}, [role=main] h1`).forEach((part) => part.remove());
    return toText(page.documentElement.outerHTML, anchor).replace(/\s+/g, " ");
  };
});
