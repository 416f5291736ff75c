// What the edit dialogs of this package share.
/* global RED, $ */
(function () {
  'use strict'

  // Asks the runtime, which asks the service: a browser may not reach it, and need not know the key.
  function ask(what, body) {
    return $.ajax({ url: 'formsvc/' + what, method: 'POST', contentType: 'application/json', data: JSON.stringify(body) })
      .then(null, function (answer) {
        var known = answer.responseJSON && answer.responseJSON.message
        return $.Deferred().reject(known || answer.status + ' ' + answer.statusText)
      })
  }

  // Returns what the runtime needs to use an account: its settings as they are in the editor, deployed or not.
  function account(id) {
    var node = RED.nodes.node(id)
    if (!node) return null
    return settings(id, node.baseUrl, node.credentials && node.credentials.apiKey)
  }

  function settings(id, baseUrl, apiKey) {
    // The editor shows this in place of a password that it does not know.
    return { id: id, baseUrl: baseUrl, apiKey: apiKey === '__PWRD__' ? '' : apiKey }
  }

  function isUuid(text) {
    return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
  }

  // Returns the search of an auto-complete field for campaigns. say shows a text below the field.
  function campaignSearch(accountField, say) {
    return function (text, done) {
      var body = account($(accountField).val())
      if (!body) {
        say(RED._('@formsvc/node-red-formsvc/formsvc-account:formsvc-account.editor.choose-account'))
        return done([])
      }
      // What is there already is no title to search for.
      body.search = isUuid(text.trim()) ? '' : text.trim()
      ask('campaigns', body).then(function (found) {
        var key = found.items.length < found.total ? 'some' : found.items.length ? 'all' : 'none'
        say(RED._('@formsvc/node-red-formsvc/formsvc-account:formsvc-account.editor.found-' + key,
          { shown: found.items.length, total: found.total }))
        done(found.items.map(option))
      }, function (why) {
        say(why)
        done([])
      })
    }
  }

  function option(campaign) {
    var label = $('<div>')
    $('<div>').text(campaign.title).appendTo(label)
    $('<div>').css({ fontSize: '0.8em', opacity: 0.6 }).text(campaign.uuid).appendTo(label)
    return { value: campaign.uuid, label: label }
  }

  // Passes on the campaign of a UUID, or null.
  function campaign(accountField, uuid, then) {
    var body = account($(accountField).val())
    if (!body || !isUuid(uuid)) return then(null)
    body.campaign = uuid
    ask('campaign', body).then(then, function (why) { then(null, why) })
  }

  window.formsvcEditor = { ask: ask, settings: settings, campaignSearch: campaignSearch, campaign: campaign }
})()
