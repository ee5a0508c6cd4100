// SPDX-License-Identifier: Apache-2.0
// Comfort only: without it the pages read the same. Bytes and tree rows light each other up, by
// pointer, focus and arrow keys; the index filters; links to a byte open their version.
'use strict';
(function () {
  function cells(section) {
    return Array.from(section.querySelectorAll('table.bytes tbody td'));
  }

  // For each byte the innermost row that covers it; rows come outer ones first.
  function owners(section) {
    if (section.owners) return section.owners;
    var owner = [];
    section.querySelectorAll('table.tree tbody tr[data-o]').forEach(function (row) {
      var from = Number(row.dataset.o), size = Number(row.dataset.s);
      for (var i = from; i < from + size; i++) owner[i] = row;
    });
    section.owners = owner;
    return owner;
  }

  function clear(section) {
    section.querySelectorAll('.on').forEach(function (e) { e.classList.remove('on'); });
  }

  function light(section, row) {
    clear(section);
    if (!row || row.dataset.o === undefined) return;
    row.classList.add('on');
    var all = cells(section), from = Number(row.dataset.o), size = Number(row.dataset.s);
    for (var i = from; i < from + size && i < all.length; i++) all[i].classList.add('on');
  }

  function say(section, index) {
    var row = owners(section)[index];
    light(section, row);
    var where = section.querySelector('.where');
    if (where && row) {
      where.textContent = 'byte 0x' + index.toString(16).padStart(4, '0') + ': ' +
        row.cells[0].textContent.replace(/^[\s|+-]*/, '') + ' ' + row.cells[2].textContent;
    }
  }

  function connect(section) {
    var grid = section.querySelector('.grid');
    var current = 0;
    section.addEventListener('pointerover', function (event) {
      var cell = event.target.closest('table.bytes tbody td');
      var row = event.target.closest('table.tree tbody tr');
      if (row) light(section, row);
      else if (cell) say(section, current = cells(section).indexOf(cell));
    });
    section.addEventListener('focusin', function (event) {
      var row = event.target.closest('table.tree tbody tr');
      if (row) light(section, row);
      else if (event.target === grid) say(section, current);
    });
    grid.addEventListener('keydown', function (event) {
      var step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 16, ArrowUp: -16 }[event.key];
      var count = cells(section).length;
      if (event.key === 'Home') current = 0;
      else if (event.key === 'End') current = count - 1;
      else if (event.key === 'Enter') { location.hash = cells(section)[current].id; return; }
      else if (step && current + step >= 0 && current + step < count) current += step;
      else return;
      event.preventDefault();
      say(section, current);
    });
    section.addEventListener('click', function (event) {
      var cell = event.target.closest('table.bytes tbody td');
      if (cell) location.hash = cell.id;
    });
  }

  function follow() {
    var target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    var section = target.closest('details');
    if (section) section.open = true;
    target.scrollIntoView({ block: 'center' });
    if (target.tagName === 'TD') say(section, cells(section).indexOf(target));
  }

  function index() {
    var form = document.getElementById('search');
    if (!form) return;
    form.hidden = false;
    var rows = Array.from(document.querySelectorAll('table.index tbody tr'));
    var count = document.getElementById('count');
    form.addEventListener('submit', function (event) { event.preventDefault(); });
    form.addEventListener('input', function () {
      var words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
      var shown = 0;
      rows.forEach(function (row) {
        var text = row.dataset.find.split(' ');
        var fits = words.every(function (word) {
          return text.some(function (t) {
            return /^\d/.test(word) ? t === word || t === 'k' + word : t.includes(word);
          });
        });
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      count.textContent = shown + ' of ' + rows.length;
    });
  }

  document.querySelectorAll('details.version').forEach(connect);
  index();
  addEventListener('hashchange', follow);
  follow();
})();
