// Creates a campaign, submits a response with a file, and lists the responses: node example.js URL KEY
import { connect } from "./formsvc.js";

const [url, key] = process.argv.slice(2);
const api = connect(url!, key!);

const campaign = await api.POST("/v1/campaigns", {
  body: { title: "Travel grants", modules: [{ name: "motivation", type: "longtext", required: true }, { name: "passport", type: "file" }] },
});
if (campaign.error) throw new Error(`${campaign.error.code}: ${campaign.error.detail}`);
const path = { uuid: campaign.data.uuid };

const refused = await api.POST("/v1/campaigns/{uuid}/responses", { params: { path }, body: { responses: {} } });
for (const { pointer, detail } of refused.error?.errors ?? []) console.log("refused:", pointer, detail);

for (const motivation of ["To learn", "To teach", "To see"]) {
  const { data, error } = await api.POST("/v1/campaigns/{uuid}/responses", {
    params: { path },
    body: { user: { email: "ada@example.com" }, responses: { motivation: { value: [motivation] } } },
  });
  if (error) throw new Error(`${error.code}: ${error.detail}`);
  const form = new FormData();
  form.set("module", "passport");
  form.set("file", new Blob(["passport of " + data.reference], { type: "text/plain" }), "passport.txt");
  const file = await api.POST("/v1/campaigns/{uuid}/responses/{response_uuid}/files", {
    params: { path: { ...path, response_uuid: data.uuid } },
    body: { file: "" }, // the type says string; the bytes are in the form
    bodySerializer: () => form,
  });
  if (file.error) throw new Error(`${file.error.code}: ${file.error.detail}`);
}

let cursor: string | null | undefined;
do {
  const { data, error } = await api.GET("/v1/campaigns/{uuid}/responses", { params: { path, query: { limit: 2, ...(cursor && { cursor }) } } });
  if (error) throw new Error(`${error.code}: ${error.detail}`);
  for (const { responses } of data.items) console.log("answer:", ...(responses["motivation"]?.value ?? []));
  cursor = data.nextCursor;
} while (cursor);
