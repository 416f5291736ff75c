'use strict'

const { call } = require('./http')

// The fields of forms in Zapier's editor, and the way from them to the answers of a response.
//
// A campaign may define modules: then each is a field of its own, whose key is this and the module's name in hexadecimal
// digits, since Zapier gives a meaning to some characters in keys. A campaign without modules takes any names.
const PREFIX = 'answer_'

function campaignField(more = {}) {
  return {
    key: 'campaign',
    label: 'Campaign',
    type: 'string',
    dynamic: 'campaigns.id.title',
    ...more,
  }
}

function requiredCampaignField(more = {}) {
  return campaignField({ required: true, search: 'find_campaign.id', ...more })
}

const responseField = {
  key: 'response',
  label: 'Response UUID',
  type: 'string',
  required: true,
  search: 'find_response.id',
  helpText: 'Map the Response UUID of a trigger, or of a step that found or created a response.',
}

// Returns the value of a required field. What was mapped may not be there, and must not become the text "undefined".
function needed(z, bundle, key) {
  const value = bundle.inputData[key]
  const text = typeof value === 'object' ? '' : String(value ?? '')
  if (/^(undefined|null|\[object Object\])?$/.test(text.trim())) {
    throw new z.errors.Error(`The field ${key} is empty. Check what is mapped to it.`, 'invalid_input')
  }
  return text
}

// Returns the modules of the chosen campaign. There are none while it is not known, as it may be mapped from an earlier step,
// nor with a key that may not read campaigns: then the answers are filled in by name.
async function modulesOf(z, bundle) {
  const uuid = String(bundle.inputData.campaign ?? '')
  if (!/^[0-9a-f-]{36}$/i.test(uuid)) return []
  try {
    const { data } = await call(z, bundle, 'GET', `/v1/campaigns/${uuid}`)
    return (data.modules ?? []).filter(({ type }) => type !== 'file' && type !== 'section') // files have an action of their own
  } catch (error) {
    if (['not_found', 'permission_denied'].includes(error.problem?.code)) return []
    throw error
  }
}

// Returns the fields for the answers.
async function answerFields(z, bundle) {
  const modules = await modulesOf(z, bundle)
  if (modules.length) return modules.map(moduleField)
  return [
    {
      key: 'answers',
      label: 'Answers',
      dict: true,
      helpText: 'The name of each module, and its value.',
    },
    {
      key: 'answersJson',
      label: 'Answers as JSON',
      type: 'text',
      helpText: 'For modules with several values: an object like {"languages": ["English", "French"]}.',
    },
  ]
}

function moduleField({ name, label, type, options, other, required, multiple, showIf }) {
  return {
    key: PREFIX + Buffer.from(name).toString('hex'),
    label: label || name,
    type: { boolean: 'boolean', longtext: 'text' }[type] ?? 'string',
    required: required && !showIf, // other answers may hide it; the service knows
    ...(multiple && { list: true }),
    ...(type === 'choice' && !other && { choices: options.map(o => ({ value: o.value ?? o, label: o.label ?? o.value ?? o, sample: o.value ?? o })) }),
    ...(type === 'consent' && { choices: [{ value: 'true', label: 'Yes', sample: 'true' }] }), // without consent it stays empty
    ...(other && { helpText: `One of these, or another text: ${options.map(o => o.value ?? o).join(', ')}` }),
    ...(HELP[type] && { helpText: HELP[type] }),
  }
}

// Dates and numbers are text for Zapier, which would change how they are written otherwise.
const HELP = {
  date: 'A day, written YYYY-MM-DD.',
  number: 'A number, with a point before decimals.',
  email: 'An e-mail address.',
  url: 'A web address.',
  phone: 'A telephone number with 6 to 20 digits.',
  time: 'A time of day, written HH:MM.',
  rating: 'A whole number.',
  scale: 'A whole number.',
}

// Returns the answers that were filled in, as the service takes them. What was left empty is left out.
function answersOf(z, inputData) {
  const answers = {}
  const add = (name, value) => {
    const values = (Array.isArray(value) ? value : [value]).filter(v => v !== undefined && v !== null && v !== '').map(String)
    if (!values.length) return
    if (values.includes('[object Object]')) throw new z.errors.Error(`The answer to ${name} is not text.`, 'invalid_input')
    if (Object.hasOwn(answers, name)) throw new z.errors.Error(`The module ${name} is answered twice.`, 'invalid_input')
    Object.defineProperty(answers, name, { value: { value: values }, enumerable: true })
  }
  for (const [key, value] of Object.entries(inputData)) {
    if (key.startsWith(PREFIX)) add(Buffer.from(key.slice(PREFIX.length), 'hex').toString(), value)
  }
  for (const [name, value] of Object.entries(inputData.answers ?? {})) add(name, value)
  for (const [name, value] of Object.entries(jsonAnswers(z, inputData.answersJson))) add(name, value)
  return answers
}

function jsonAnswers(z, text) {
  if (!text) return {}
  let answers = text
  try {
    if (typeof text === 'string') answers = JSON.parse(text)
  } catch (error) {
    throw new z.errors.Error(`Answers as JSON is not JSON: ${error.message}.`, 'invalid_input')
  }
  const isAnswer = value => (Array.isArray(value) ? value : [value]).every(v => v === null || typeof v !== 'object')
  if (answers === null || typeof answers !== 'object' || Array.isArray(answers) || !Object.values(answers).every(isAnswer)) {
    throw new z.errors.Error('Answers as JSON must be an object whose members are strings or lists of strings.', 'invalid_input')
  }
  return answers
}

// Returns labels for the answers in what a trigger puts out, where a campaign with modules was chosen.
async function moduleOutputFields(z, bundle) {
  return (await modulesOf(z, bundle)).map(({ name, label }) => (
    { key: `data__response__responses__${name}__value`, label: label || name }))
}

module.exports = { answerFields, answersOf, campaignField, moduleOutputFields, needed, requiredCampaignField, responseField }
