// To the clipboard, which browsers keep from pages that came over plain HTTP.

/** Copy, and give the sentence that tells how it went. */
export async function copy(text, otherwise = "This browser does not copy it: select it and copy it by hand.") {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied.";
  } catch {
    return otherwise;
  }
}
