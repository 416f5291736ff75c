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

  // What the dialogs of both triggers have: events and a campaign.
  var EVENTS = ['response.created', 'response.status_changed', 'signature.completed', 'response.updated',
    'response.completed', 'file.uploaded']

  function text(key) {
    return RED._('@formsvc/node-red-formsvc/formsvc-in:formsvc-in.' + key)
  }

  function prepareTrigger(node) {
    prepareEvents([].concat(node.events || []))
    prepareCampaign()
  }

  function prepareEvents(chosen) {
    EVENTS.forEach(function (event) {
      var label = $('<label style="width: auto; display: block">').appendTo('#formsvc-events')
      $('<input type="checkbox" style="width: auto; margin: 0 6px 0 0; vertical-align: baseline">').val(event)
        .prop('checked', chosen.indexOf(event) >= 0).appendTo(label)
      $('<span>').text(text('event.' + event.replace('.', '-'))).appendTo(label)
      $('<code style="margin-left: 6px">').text(event).appendTo(label)
    })
  }

  function chosenEvents() {
    return $('#formsvc-events input:checked').map(function () { return this.value }).get()
  }

  function prepareCampaign() {
    var hint = function (words) { $('#formsvc-campaign-hint').text(words) }
    var field = $('#node-input-campaign')
    field.autoComplete({ minLength: 0, search: campaignSearch('#node-input-account', hint) })
    var name = function () {
      var value = field.val().trim()
      if (!value) return hint(text('editor.search-hint'))
      campaign('#node-input-account', value, function (found, why) {
        hint(found ? found.title : why || text('editor.search-hint'))
      })
    }
    field.on('change', name)
    name()
  }

  window.formsvcEditor = {
    ask: ask, settings: settings, campaignSearch: campaignSearch, campaign: campaign,
    prepareTrigger: prepareTrigger, chosenEvents: chosenEvents,
  }
})()
