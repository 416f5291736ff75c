'use strict'

const { Readable } = require('stream')
const { call } = require('./http')

// Downloads a file of a response to Zapier's storage and returns the address there. Zapier runs it when a later step
// needs the file.
async function downloadFile(z, bundle) {
  const path = `/v1/files/${encodeURIComponent(bundle.inputData.fileUuid)}`
  const response = await call(z, bundle, 'GET', path, { raw: true, headers: { Accept: '*/*' } })
  return z.stashFile(response)
}

// Requests a file that a step was given and returns its stream, name, type and, where it is known, its size. The request
// has no key of ours. What arrives is what is stored: no compression is asked for. z.request() is not used, since its
// streams do not tell when they break off; with its User-Agent, Zapier does not read the file into its log.
async function openFile(z, address) {
  const url = checkedUrl(z, address)
  // The query may hold a key, so it is not shown.
  const refuse = why => new z.errors.Error(`The file could not be fetched: ${url.origin}${url.pathname} ${why}.`, 'file_not_fetched')
  const headers = { Accept: '*/*', 'Accept-Encoding': 'identity', 'user-agent': 'Zapier' }
  const response = await fetch(url, { headers }).catch(error => {
    throw refuse(`can not be reached: ${error.cause?.message ?? error.message}`)
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw refuse(`answered ${response.status}`)
  }
  const encoded = response.headers.get('content-encoding')
  return {
    stream: response.body ? Readable.fromWeb(response.body) : Readable.from([]),
    name: dispositionName(response.headers.get('content-disposition')) || pathName(response.url),
    type: contentType(response.headers.get('content-type')),
    size: encoded && encoded !== 'identity' ? null : response.headers.get('content-length'),
  }
}

function checkedUrl(z, address) {
  try {
    const url = new URL(String(address).trim())
    if (url.protocol === 'https:' || url.protocol === 'http:') return url
  } catch {
    // It is refused below.
  }
  throw new z.errors.Error('File must be a file of an earlier step or a web address.', 'invalid_input')
}

// A form is what the service would take apart, so a file of that type is sent without it.
function contentType(type) {
  return type && !/^multipart\//i.test(type) ? type : 'application/octet-stream'
}

// Returns the name in a Content-Disposition (RFC 6266); filename*, which can have any character, goes first.
function dispositionName(text) {
  if (!text) return ''
  const extended = /;\s*filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(text)
  if (extended) {
    try {
      return decodeURIComponent(extended[1])
    } catch {
      // The other one may be right.
    }
  }
  const plain = /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(text)
  return plain ? utf8(plain[1]?.replace(/\\(.)/g, '$1') ?? plain[2]) : ''
}

// Headers arrive as Latin-1, but many servers write UTF-8 there.
function utf8(text) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}

function pathName(address) {
  const last = new URL(address).pathname.split('/').pop()
  try {
    return decodeURIComponent(last) || 'file'
  } catch {
    return last || 'file'
  }
}

// Returns a Content-Disposition with a name of any characters (RFC 8187).
function attachmentNamed(name) {
  const encoded = encodeURIComponent(name).replace(/['()*]/g, c => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename*=UTF-8''${encoded}`
}

module.exports = { attachmentNamed, dispositionName, downloadFile, openFile }
