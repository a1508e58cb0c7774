"use strict";
// The page says everything without this script: it only sorts, filters and copies what is there.

const cellText = (row, index) => {
  const cell = row.cells[index];
  return cell ? (cell.dataset.value ?? cell.textContent.trim()) : "";
};

// Rows that belong to the one above, as published figures do, move with it.
const rowsOf = (body) => {
  const groups = [];
  for (const row of body.rows) {
    if (row.classList.contains("published") && groups.length) groups.at(-1).push(row);
    else groups.push([row]);
  }
  return groups;
};

const compare = (left, right) => {
  // Differences have a typographic minus, and small p values are "< 0.001".
  const plain = (text) => text.replace("−", "-").replace(/^</, "").replaceAll(",", "");
  const [a, b] = [left, right].map((text) => Number.parseFloat(plain(text)));
  if (Number.isNaN(a) && Number.isNaN(b)) return left.localeCompare(right);
  if (Number.isNaN(a) || Number.isNaN(b)) return 0;
  return a - b;
};

const isMissing = (text) => text === "" || text === "–";

const sortBy = (table, index, direction) => {
  for (const body of table.tBodies) {
    const fixed = [...body.rows].filter((row) => row.classList.contains("group"));
    const groups = rowsOf(body).filter(([row]) => !row.classList.contains("group"));
    if (!body.synthbenchOrder) body.synthbenchOrder = groups;
    const ordered = direction === 0 ? body.synthbenchOrder : [...groups].sort(([left], [right]) => {
      const [a, b] = [cellText(left, index), cellText(right, index)];
      // What is missing stays last, in both directions.
      if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
      return direction * compare(a, b);
    });
    body.append(...fixed, ...ordered.flat());
  }
};

const makeSortable = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      const next = { null: "descending", descending: "ascending", ascending: "none" }[was];
      if (next !== "none") head.setAttribute("aria-sort", next);
      sortBy(table, index, { descending: -1, ascending: 1, none: 0 }[next]);
    });
  });
};

const FEWEST_ROWS_TO_FILTER = 6;

const makeFilterable = (table) => {
  const groups = [...table.tBodies].flatMap(rowsOf).filter(([row]) => !row.classList.contains("group"));
  if (groups.length < FEWEST_ROWS_TO_FILTER) return;
  const label = document.createElement("label");
  label.className = "filter";
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "part of a row's text";
  label.append("Show rows with ", field);
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const rows of groups) {
      const found = rows.some((row) => row.textContent.toLowerCase().includes(wanted));
      for (const row of rows) row.hidden = !found;
    }
  });
  table.closest(".scroll").before(label);
};

const copied = async (text, area) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without permission the text is selected: Ctrl-C copies it.
    getSelection().selectAllChildren(area);
    return false;
  }
};

const makeCopyable = (area) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const done = await copied(area.textContent, area);
    button.textContent = done ? "Copied" : "Selected: press Ctrl-C";
  });
  area.before(button);
};

document.querySelectorAll("table.sortable").forEach((table) => {
  makeSortable(table);
  makeFilterable(table);
});
document.querySelectorAll("pre.copy").forEach(makeCopyable);
