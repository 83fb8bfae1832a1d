"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const search = form.elements.namedItem("text");
  const count = document.getElementById("count");
  const toggle = document.getElementById("toggle");
  const findings = [...document.querySelectorAll("details.finding")];
  const files = [...document.querySelectorAll("section.file")];
  const texts = findings.map((one) => `${one.dataset.path}\n${one.textContent}`.toLowerCase());

  const apply = () => {
    const asked = new FormData(form);
    const words = asked.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    const rule = asked.get("rule");
    const severities = asked.getAll("severity");
    const confidences = asked.getAll("confidence");
    let shown = 0;
    findings.forEach((one, at) => {
      const { rule: code, severity, confidence } = one.dataset;
      const fits =
        (!rule || rule === code) &&
        severities.includes(severity) &&
        confidences.includes(confidence) &&
        words.every((word) => texts[at].includes(word));
      one.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    for (const file of files) file.hidden = !file.querySelector("details.finding:not([hidden])");
    count.value = `${shown} of ${findings.length}`;
  };

  const visible = () => findings.filter((one) => !one.hidden);

  const step = (by) => {
    const rows = visible();
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement?.closest?.("details.finding"));
    const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
    rows[next].querySelector("summary").focus();
  };

  const open = (wanted) => {
    for (const one of visible()) one.open = wanted;
    toggle.textContent = wanted ? "Close all" : "Open all";
  };

  // a link to a finding that the filters hide, or to a page that is closed
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden) {
      form.reset();
      apply();
    }
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  };

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  toggle.addEventListener("click", () => open(toggle.textContent === "Open all"));
  window.addEventListener("hashchange", follow);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === search && event.key === "Escape") {
      search.value = "";
      apply();
      search.blur();
    }
    if (event.target.closest("input, select, textarea, button")) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
    } else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
  });

  // closed findings would be printed without what they say
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = visible().filter((one) => !one.open);
    for (const one of closed) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });

  for (const one of document.querySelectorAll(".with-script")) one.hidden = false;
  form.hidden = false;
  apply();
  if (location.hash) follow();
})();
