// The filters above the table of claims. What is chosen stands in the address, so that it can be linked to.
const filters = document.getElementById("claim-filters");
if (filters) {
  const rows = [...document.querySelectorAll("#claims tbody tr")];
  const shown = document.getElementById("claims-shown");
  const show = () => {
    const chosen = [...new FormData(filters)].filter(([, value]) => value);
    const words = filters.words.value.toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits = chosen.every(([name, value]) => name === "words" || row.dataset[name] === value);
      row.hidden = !(fits && row.textContent.toLowerCase().includes(words));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length}`;
    history.replaceState(null, "", "#" + new URLSearchParams(chosen));
  };
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (filters.elements[name]) filters.elements[name].value = value;
  }
  filters.addEventListener("input", show);
  filters.addEventListener("submit", (event) => event.preventDefault());
  if (location.hash.includes("=")) show();
}
