// Where the labels of events go: in lanes above a timeline, each beside the line of its event.
//
//   lane 1   |a node is cut off
//   lane 0   |                 |the mesh is deleted      |connected
//            |                 |                         |
//   ---------+-----------------+-------------------------+---------

/** A label that wants a place. */
export type EventLabel = { readonly x: number; readonly width: number };

/** Where it goes: lane 0 is next to the timeline; the text begins or ends at the line. */
export type LabelPlace = { readonly lane: number; readonly side: "right" | "left" };

type Placed = LabelPlace & { readonly x: number; readonly fromX: number; readonly toX: number };

const marginX = 6;

/**
 * Finds a place for every label, in their order, which is that of time. No two labels overlap. No line runs through a
 * label, unless labels at the right end leave no other way.
 */
export function placeLabels(labels: readonly EventLabel[], rightX: number): readonly LabelPlace[] {
  const placed = new Map<EventLabel, Placed>();
  const put = (label: EventLabel, side: LabelPlace["side"]): void => {
    const [fromX, toX] = side === "right" ? [label.x, label.x + label.width] : [label.x - label.width, label.x];
    const wanted = { x: label.x, fromX, toX, side };
    const others = [...placed.values()];
    placed.set(
      label,
      lowest(wanted, others, isClean) ?? lowest(wanted, others, isFree) ?? { ...wanted, lane: others.length },
    );
  };
  const isLeft = ({ x, width }: EventLabel): boolean => x + width > rightX;
  // A label to the left of its line lies across earlier lines, one to the right across later ones: these lines come first.
  for (const label of labels.filter(isLeft)) put(label, "left");
  for (const label of labels.filter((each) => !isLeft(each)).toReversed()) put(label, "right");
  return labels.map((label) => {
    const { lane, side } = placed.get(label) ?? { lane: 0, side: "right" };
    return { lane, side };
  });
}

function lowest(
  wanted: Omit<Placed, "lane">,
  others: readonly Placed[],
  fits: (label: Placed, other: Placed) => boolean,
): Placed | undefined {
  // One lane per label is always enough to keep labels apart.
  return Array.from({ length: others.length + 1 }, (_, lane) => ({ ...wanted, lane })).find((label) =>
    others.every((other) => fits(label, other)),
  );
}

const isFree = (label: Placed, other: Placed): boolean =>
  label.lane !== other.lane || label.toX + marginX <= other.fromX || other.toX + marginX <= label.fromX;

const isClean = (label: Placed, other: Placed): boolean =>
  isFree(label, other) && !crosses(label, other) && !crosses(other, label);

/** Whether the line of one label runs through the text of another. */
const crosses = (line: Placed, text: Placed): boolean =>
  line.lane > text.lane && line.x > text.fromX - marginX && line.x < text.toX + marginX;
