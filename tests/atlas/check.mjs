// SPDX-License-Identifier: Apache-2.0
// Opens the exported reference in a real headless Chromium: axe-core finds nothing, nothing comes
// from outside, it reads without scripts, and bytes and tree rows light each other up by pointer
// and keyboard. Usage: node check.mjs SITE [SCREENSHOTS], with puppeteer-core and axe-core in
// $ESK_NODE_MODULES (npm install --prefix DIR puppeteer-core axe-core) and chromium on the path.
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [site, shots] = process.argv.slice(2);
const modules = process.env.ESK_NODE_MODULES;
let puppeteer, axe, chromium;
try {
  const require = createRequire(path.join(modules ?? '', 'x.js'));
  puppeteer = require('puppeteer-core');
  axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  chromium = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser'])
    .toString().trim();
} catch (error) {
  console.log('skipped: ' + error.message.split('\n')[0]);
  process.exit(77);
}

let failed = 0;
function expect(good, what) {
  if (!good) { failed++; console.log('FAILED: ' + what); }
}

const browser = await puppeteer.launch({
  executablePath: chromium, args: ['--no-sandbox', '--allow-file-access-from-files'] });
const url = name => pathToFileURL(path.resolve(site)).href + '/' + name;

async function open(name, { dark = false, script = true, width = 1400 } = {}) {
  const page = await browser.newPage();
  page.on('request', r => expect(/^(file|data):/.test(r.url()), 'outside request ' + r.url()));
  page.on('pageerror', e => expect(false, 'script error ' + e));
  await page.setJavaScriptEnabled(script);
  await page.setViewport({ width, height: 1000 });
  const scheme = dark ? 'dark' : 'light';
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(url(name));
  return page;
}

async function accessible(page, what) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document));
  for (const v of result.violations) {
    expect(false, `${what}: axe ${v.id}: ${v.nodes.length} × ${v.nodes[0].html.slice(0, 150)}`);
  }
}

async function shot(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, name + '.png') });
}

for (const dark of [false, true]) {
  for (const name of ['index.html', 'AllocateProducerIds.html', 'Fetch.html', 'Produce.html']) {
    const page = await open(name, { dark });
    const what = name.replace('.html', '') + (dark ? '-dark' : '-light');
    await accessible(page, what);
    await shot(page, what);
    await page.close();
  }
}

{ // a narrow screen
  const page = await open('Fetch.html', { width: 400 });
  await accessible(page, 'narrow');
  const wide = await page.evaluate(() => Array.from(document.querySelectorAll('main *'))
    .filter(e => !e.closest('.scroll, pre') && e.getBoundingClientRect().right > innerWidth)
    .map(e => e.outerHTML.slice(0, 80)).slice(0, 3));
  expect(wide.length === 0, 'narrow screen, sticks out: ' + wide);
  await shot(page, 'Fetch-narrow');
  await page.close();
}

{ // search: by name, by key, by Kafka release
  const page = await open('index.html');
  const search = async text => {
    await page.$eval('#search input', (e, t) => {
      e.value = t; e.dispatchEvent(new Event('input', { bubbles: true }));
    }, text);
    return page.$$eval('table.index tbody tr', rows =>
      rows.filter(r => !r.hidden).map(r => r.cells[1].textContent));
  };
  expect((await search('')).length === 91, 'the index has 91 APIs');
  expect((await search('allocate')).join() === 'AllocateProducerIds', 'search by name');
  expect((await search('67')).join() === 'AllocateProducerIds', 'search by key');
  const old = await search('3.5');
  expect(old.includes('Fetch') && !old.includes('StreamsGroupHeartbeat'), 'search by release');
  await page.close();
}

{ // no script
  const page = await open('AllocateProducerIds.html', { script: false });
  const text = await (await page.$('body')).evaluate(e => e.innerText);
  for (const part of ['The ID of the requesting broker.', '28 bytes on the wire', '"apiKey": 67',
                      'ProducerIdStart']) {
    expect(text.includes(part), 'readable without script: ' + part);
  }
  await page.close();
}

{ // bytes and rows
  const page = await open('AllocateProducerIds.html');
  const lit = () => page.evaluate(() => [
    document.querySelectorAll('td.on').length,
    Array.from(document.querySelectorAll('tr.on th')).map(e => e.textContent.trim()).join()]);
  await page.hover('#q0-13');
  let [bytes, row] = await lit();
  expect(bytes === 8 && row.endsWith('BrokerEpoch'), `pointing at a byte: ${bytes} ${row}`);
  await page.hover('details[name=request] table.tree tbody tr:nth-child(11)');
  [bytes, row] = await lit();
  expect(bytes === 4 && row.endsWith('BrokerId'), `pointing at a row: ${bytes} ${row}`);
  await page.focus('.grid');
  await page.keyboard.press('End');
  [bytes, row] = await lit();
  expect(bytes === 1 && row.endsWith('tagged_fields'), `End key: ${bytes} ${row}`);
  await page.keyboard.press('ArrowLeft');
  [bytes, row] = await lit();
  expect(bytes === 8 && row.endsWith('BrokerEpoch'), `arrow key: ${bytes} ${row}`);
  await page.focus('details[name=request] table.tree tbody tr:nth-child(6) a');
  [bytes, row] = await lit();
  expect(bytes === 2 && row.endsWith('request_api_version'), `focus on a row: ${bytes} ${row}`);
  await page.close();
}

{ // a deep link opens its version and marks its byte
  const page = await open('Fetch.html#q7-1f');
  const state = await page.evaluate(() => {
    const cell = document.getElementById('q7-1f');
    return [cell.closest('details').open, cell.getBoundingClientRect().height > 0,
            cell.matches(':target')];
  });
  expect(state.every(Boolean), 'deep link to a byte: ' + state);
  await shot(page, 'deep-link');
  await page.close();
}

await browser.close();
console.log(failed ? `${failed} failed` : 'the site is in order');
process.exit(failed ? 1 : 0);
