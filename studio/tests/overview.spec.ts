// What runs add up to, and the labels by which they are found.

import { ERRING, ERRING_RUN, WITH_KEYS, enter, expect, isAccessible, picture, test, useKey } from "./daemon.ts";

test("an overview adds runs up, and each number leads to its runs", { tag: "@firefox" }, async ({ daemon, watched: page }) => {
  await daemon.start(ERRING);
  const sort = await daemon.submit(ERRING_RUN);
  const gcd = await daemon.submit({ task: "gcd-euclidean", fanout: 1 });
  for (const id of [sort, gcd]) await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/overview`);
  const tasks = page.getByRole("region", { name: "By task", exact: true });
  await expect(tasks.getByRole("row")).toHaveCount(3);
  await expect(page.getByRole("region", { name: "By day", exact: true }).getByRole("row")).toHaveCount(2);
  // The figures of a run are there when it is noted.
  const refused = page.getByRole("region", { name: "What refused lines", exact: true });
  await expect(refused.getByRole("row", { name: /bubble-sort/ }).first()).toBeVisible();
  await isAccessible(page);
  await picture(page, "overview");
  // The count of a constraint leads to the runs in which it refused a line.
  const row = refused.getByRole("row", { name: /bubble-sort/ }).first();
  const constraint = (await row.getByRole("rowheader").textContent()) ?? "";
  const lines = (await row.getByRole("link").last().textContent()) ?? "";
  await row.getByRole("link").last().click();
  await expect(page).toHaveURL(/runs\?task=bubble-sort&constraint=/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  // The list says how many lines of each run it refused: of the only one, as many as of all.
  const column = page.getByRole("columnheader", { name: `Lines refused by ${constraint}` });
  await expect(column).toBeVisible();
  await expect(page.locator("tbody tr").getByRole("cell", { name: lines, exact: true }).first()).toBeVisible();
  await isAccessible(page);
  await page.goBack();
  await tasks.getByRole("row", { name: /gcd-euclidean/ }).getByRole("link", { name: "1", exact: true }).first().click();
  await expect(page).toHaveURL(/runs\?task=gcd-euclidean/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await page.goBack();
  await enter(page.getByRole("searchbox", { name: "Task" }), "bubble-sort");
  await expect(tasks.getByRole("row")).toHaveCount(2);
  await page.getByRole("region", { name: "By day", exact: true }).getByRole("link", { name: "1", exact: true }).first().click();
  await expect(page).toHaveURL(/task=bubble-sort/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
});

test("labels are given with a run, changed on its page, and lead to the runs that have them", { tag: "@firefox" }, async ({
  daemon,
  watched: page,
  expected,
}) => {
  expected.push("400 (Bad Request)");
  await daemon.start(["agents.executor.implementation=reference"]);
  await page.goto(`${daemon.url}/studio/runs/new`);
  const labels = page.getByRole("textbox", { name: /^Labels/ });
  await labels.fill("a team: red");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.locator(".field.wrong")).toContainText('"a team" is not a name for a label');
  await labels.fill("team: red\nurl: http://x");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.locator(".title .badge")).toHaveText(/ verified/);
  await expect(page.locator(".labels a")).toHaveText(["team: red", "url: http://x"]);
  await page.getByText("Change labels").click();
  await page.getByRole("textbox", { name: /^Labels/ }).fill("team: <b>blue</b>");
  await page.getByRole("button", { name: "Save labels" }).click();
  await expect(page.locator(".labels a")).toHaveText(["team: <b>blue</b>"]);
  await isAccessible(page);
  await page.locator(".labels a").click();
  await expect(page).toHaveURL(/label=team/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await expect(page.locator("tbody .labels a")).toHaveText(["team: <b>blue</b>"]);
});

test("an overview says whose runs it adds up", { tag: "@firefox" }, async ({ daemon, watched: page, expected }) => {
  expected.push("403 (Forbidden)");
  await daemon.start([...ERRING, WITH_KEYS]);
  await daemon.submit(ERRING_RUN, "abc");
  await useKey(page);
  await page.goto(`${daemon.url}/studio/overview`);
  await expect(page.getByText(/of the key ada/)).toBeVisible();
  await enter(page.getByRole("group", { name: "Filters" }).getByLabel("Key"), "ben");
  await expect(page.getByRole("alert")).toContainText("only a key with `admin = true`");
});
