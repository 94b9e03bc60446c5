// Of a long list only what is near the window is in the page: ten thousand cards would be a quarter of a million elements. Pure.

const SCREENS = 1.5; // above and below what is seen

/**
 * Which of the cards to show, and how much room the others take above and below.
 * @param {{count: number, columns: number, row: number, top: number, height: number}} seen `top`: how far the list is scrolled
 */
export function near({ count, columns, row, top, height }) {
  const rows = Math.ceil(count / columns);
  const last = Math.min(rows, Math.max(1, Math.ceil((top + height * (1 + SCREENS)) / row)));
  const first = Math.min(last - 1, Math.max(0, Math.floor((top - height * SCREENS) / row)));
  return { from: first * columns, to: Math.min(count, last * columns), above: first * row, below: (rows - last) * row };
}
