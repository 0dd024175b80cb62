const blockMax = 64;

/** The certificates of a PEM text, each in one spelling: no text around it, and a newline at its end. */
export function certificateBlocks(pem: string): readonly string[] {
  const blocks: string[] = [];
  for (const match of pem.matchAll(/-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g)) {
    if (blocks.length === blockMax) break;
    const lines = (match[1] ?? "").replaceAll(/\s+/g, "").match(/.{1,64}/g) ?? [];
    const block = `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
    if (!blocks.includes(block)) blocks.push(block);
  }
  return blocks;
}
