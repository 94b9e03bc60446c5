// How often what is shown may be mended before the player gives up. Pure.

const MOST = 5;
const PAST_S = 5; // who plays on so far past the last problem has another one

/** Give what tells, at each problem and by where it is, whether another try is worth it. What is loaded anew says nothing. */
export function mending() {
  let tries = 0;
  let place = 0;
  return (time) => {
    if (time > place + PAST_S) tries = 0;
    tries += 1;
    place = Math.max(place, time);
    return tries <= MOST;
  };
}
