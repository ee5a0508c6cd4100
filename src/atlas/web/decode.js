// SPDX-License-Identifier: Apache-2.0
// Sends what was pasted to the broker and shows its trees. Text only ever becomes text nodes.
'use strict';
(function () {
  var form = document.getElementById('decode');
  var result = document.getElementById('result');
  form.hidden = false;

  function put(name, text) {
    var element = document.createElement(name);
    element.textContent = text;
    result.appendChild(element);
    return element;
  }

  function show(answer) {
    result.replaceChildren();
    answer.notes.forEach(function (note) { put('p', note); });
    answer.messages.forEach(function (message) {
      put('h2', message.title);
      put('pre', message.tree).tabIndex = 0;
      message.warnings.forEach(function (text) { put('p', 'Warning: ' + text); });
      if (message.error) {
        put('p', 'Stops being legal at offset 0x' + message.error.offset.toString(16) + ': ' +
          message.error.text);
      }
    });
  }

  form.addEventListener('submit', function (event) {
    event.preventDefault();
    var body = {};
    body[form.elements.form.value] = form.elements.bytes.value;
    if (form.elements.type.value) {
      body.type = form.elements.type.value;
      body.name = form.elements.name.value.trim();
      body.version = Number(form.elements.version.value);
    }
    var headers = { 'Content-Type': 'application/json' };
    if (form.elements.key.value) headers.Authorization = 'Bearer ' + form.elements.key.value;
    fetch('decode', { method: 'POST', headers: headers, body: JSON.stringify(body) })
      .then(function (response) {
        return response.json().then(function (answer) {
          if (!response.ok) throw new Error(answer.error);
          show(answer);
        });
      })
      .catch(function (error) {
        result.replaceChildren();
        put('p', error.message);
      });
  });
})();
