"""The words of the domains of private and of public life.

Concepts are separated by ";", their synonyms by "|"; after ":" come an action's nouns with preposition.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DomainWords:
    """The words of one domain; `people` adds the agents of `PEOPLE` (man, woman, ...)."""

    name: str
    agent_type: Literal["person", "animal", "organisation"]
    agents: str
    places: str
    scenes: tuple[tuple[str, str], ...]
    people: bool = False


PEOPLE = "man|guy; woman|lady; boy|lad; girl; teenager|adolescent"

ATTRIBUTES = {
    "person": (
        "young|youthful; old|elderly|aged; tall; tired|weary|exhausted; happy|cheerful|joyful; "
        "angry|furious|irate; famous|well-known|celebrated; injured|wounded; foreign; strong|muscular; "
        "nervous|anxious; experienced|seasoned"
    ),
    "animal": (
        "young|juvenile; old|aged; brown; black; white; little|small|tiny; big|large|huge; "
        "hungry|starving; wet|soaked; tired|exhausted; wild|untamed; aggressive|fierce"
    ),
    "organisation": (
        "big|large|major; little|small|minor; foreign|overseas; local|regional; private|privately owned; "
        "leading|top; troubled|struggling|ailing; rich|wealthy; state-owned|government-owned"
    ),
}

TIMES = (
    "at dawn|at sunrise|at daybreak; in the morning|before noon; at noon|at midday; "
    "in the afternoon|after lunch; in the evening; at dusk|at sunset|at nightfall; at night|after dark; "
    "at the weekend|on the weekend; in winter|during the winter; in summer|during the summer"
)


PRIVATE_LIFE = (
    DomainWords(
        name="cooking",
        agent_type="person",
        people=True,
        agents="chef|cook; baker; waiter|server; butcher; grandmother|grandma",
        places=(
            "in the kitchen|by the stove; in a restaurant|in a diner; at a food stall|at a snack stand; "
            "on the terrace|on the patio; in a cafeteria|in a canteen"
        ),
        scenes=(
            (
                "slice|chop|cut up; peel|skin; wash|rinse; fry; weigh",
                "potatoes|spuds; carrots; onions; tomatoes; peppers|bell peppers; aubergines|eggplants; "
                "mushrooms|button mushrooms; zucchini|courgettes",
            ),
            (
                "bake; serve|dish up; eat|devour; decorate|garnish",
                "a cake|a gateau; a pie|a tart; a pizza; some bread|a loaf of bread; cookies|biscuits; "
                "muffins|cupcakes; an omelette; a quiche",
            ),
            (
                "stir|mix; taste|sample: tasting of; heat|warm up; prepare|make: preparation of",
                "some soup|some broth; a sauce; a stew|a casserole; some porridge|some oatmeal; "
                "some curry; some hot chocolate|some cocoa",
            ),
        ),
    ),
    DomainWords(
        name="farming",
        agent_type="person",
        people=True,
        agents="farmer|grower; shepherd|herder; gardener|horticulturist; farmhand|farm worker; rancher",
        places=(
            "on a farm; in the field|in the meadow; in a greenhouse|in a glasshouse; "
            "behind the barn|behind the shed; on a hillside|on a slope; in the countryside|in a rural area"
        ),
        scenes=(
            (
                "plant|sow: planting of; water|irrigate: irrigation of; harvest|gather: harvest of; "
                "sell: sale of; spray",
                "some corn|some maize; some wheat; pumpkins; strawberries; some cotton; sunflowers; "
                "cabbages; some rice; some barley",
            ),
            (
                "feed; chase|run after|pursue: pursuit of; tend|look after|care for: care of; count",
                "a cow; sheep; pigs|hogs; chickens|hens; a goat; geese; a donkey|a mule; a turkey",
            ),
            (
                "drive|steer; repair|fix|mend: repair of; push; wash|clean",
                "a tractor; a cart|a wagon; a trailer; a combine harvester; a pickup truck",
            ),
        ),
    ),
    DomainWords(
        name="sport",
        agent_type="person",
        people=True,
        agents="player; goalkeeper|goalie; coach|trainer; athlete|sportsman; referee|umpire; fan|supporter",
        places=(
            "in a stadium|in an arena; on the pitch|on the playing field; in a gym|in a gymnasium; "
            "in the park; on the beach|on the shore; on a court"
        ),
        scenes=(
            (
                "kick|boot; throw|toss|hurl; catch|grab; hit|strike",
                "a ball; a football|a soccer ball; a basketball; a frisbee|a flying disc; a tennis ball; "
                "a rugby ball; a volleyball; a baseball",
            ),
            (
                "win; lose; watch|follow; celebrate: celebration of; interrupt|disrupt: interruption of",
                "a match|a game; a tournament|a competition; a race; a championship final; "
                "a marathon; a boxing bout|a boxing fight; a relay",
            ),
            (
                "lift|raise; carry; drop; hold|grip",
                "a barbell|a dumbbell; a flag|a banner; a surfboard; skis; a racket; a trophy|a cup; "
                "a javelin",
            ),
        ),
    ),
    DomainWords(
        name="music",
        agent_type="person",
        people=True,
        agents=(
            "musician|instrumentalist; singer|vocalist; dancer; street performer|busker; "
            "music teacher; conductor"
        ),
        places=(
            "on stage|before an audience; in a concert hall|in an auditorium; in a recording studio; "
            "at a festival|at an open-air concert; in a bar|in a pub; in a church|in a chapel"
        ),
        scenes=(
            (
                "play; tune: tuning of; carry; buy|purchase: purchase of; repair|fix|mend: repair of",
                "a guitar; a piano; a violin|a fiddle; a flute; drums; a trumpet; a cello; a harp; "
                "a saxophone; an accordion",
            ),
            (
                "sing|perform: performance of; record: recording of; "
                "rehearse|practise: rehearsal of; compose|write: composition of",
                "a song|a tune; a ballad; an opera; a hymn; a duet; an anthem; a lullaby; a choral work",
            ),
        ),
    ),
    DomainWords(
        name="traffic",
        agent_type="person",
        people=True,
        agents=(
            "driver|motorist; cyclist|bicyclist; mechanic; commuter|passenger; "
            "tourist|traveller|sightseer; courier|delivery worker"
        ),
        places=(
            "on the road|on the street; at a crossroads|at an intersection; on a bridge; "
            "in a garage|in a repair shop; on the highway|on the motorway; in the city|in the town"
        ),
        scenes=(
            (
                "drive|steer; wash|clean; park; repair|fix|mend: repair of; push; rent|hire: rental of",
                "a car|an automobile; a truck|a lorry; a van; a bus; a taxi|a cab; "
                "a motorcycle|a motorbike; a moped",
            ),
            (
                "ride; buy|purchase: purchase of; paint; carry",
                "a bicycle|a bike; a skateboard; a tricycle; a unicycle; a kick scooter",
            ),
            (
                "board|enter; leave|exit; photograph; inspect|examine: inspection of",
                "a train; a tram|a streetcar; a ferry; an airplane|a plane|an aircraft; a helicopter; "
                "a hot-air balloon",
            ),
        ),
    ),
    DomainWords(
        name="animals",
        agent_type="animal",
        agents="dog|hound; cat|feline; horse; monkey; bear; wolf; elephant; puppy; fox; kitten",
        places=(
            "in the forest|in the woods; in a zoo|in an animal park; in the garden|in the backyard; "
            "in the snow; by the river|on the riverbank; on the grass|on the lawn; in the mud"
        ),
        scenes=(
            (
                "chase|run after|pursue: pursuit of; catch|capture: capture of; attack: attack on; "
                "watch|observe; bite",
                "a rabbit|a bunny; a mouse; a squirrel; a bird; a butterfly; a duck; a lizard; a deer; "
                "a snake|a serpent; a frog",
            ),
            (
                "chew|gnaw; carry; lick; sniff|smell; drop; bury",
                "a bone; a stick|a branch; a toy; a shoe|a boot; a banana; a blanket; a rope; a glove",
            ),
            (
                "jump over|leap over; cross; avoid; approach",
                "a log; a stream|a brook; a hurdle; a puddle; a ditch|a trench; a hedge",
            ),
        ),
    ),
    DomainWords(
        name="household",
        agent_type="person",
        people=True,
        agents=(
            "mother|mom; father|dad; cleaner|housekeeper; babysitter|nanny; grandfather|grandpa; neighbor"
        ),
        places=(
            "at home|in the house; in the bedroom; in the living room|in the lounge; "
            "in the bathroom|in the washroom; in the hallway|in the corridor; in the attic|in the loft"
        ),
        scenes=(
            (
                "clean|wipe; move|shift; buy|purchase: purchase of; paint; sell: sale of",
                "a table; a chair; a sofa|a couch; a mirror; a wardrobe|a closet; a lamp; "
                "a bookcase|a bookshelf; a chest of drawers",
            ),
            (
                "wash|launder; iron|press; fold; put on; sew|stitch",
                "a shirt; a dress|a gown; trousers|pants; a sweater|a jumper; socks; a coat|an overcoat; "
                "a scarf|a shawl; a skirt",
            ),
        ),
    ),
    DomainWords(
        name="sea",
        agent_type="person",
        people=True,
        agents=("fisherman|angler; sailor|seaman; diver; lifeguard; captain|skipper; rescuer|rescue worker"),
        places=(
            "at sea|on the ocean; in the harbor|in the port; off the coast; on a lake; in a canal; "
            "near an island; in the bay"
        ),
        scenes=(
            (
                "rescue|save: rescue of; escort|guide; help|assist|aid; warn: warning of",
                "a swimmer|a bather; a surfer; migrants|refugees; a kayaker; a shipwrecked crew; "
                "holidaymakers|vacationers; a pirate",
            ),
            (
                "tow|tug; abandon|desert: abandonment of; paint; repair|fix|mend: repair of; anchor|moor",
                "a boat; a ship|a vessel; a yacht; a canoe; a raft; a trawler|a fishing boat; a submarine; "
                "a lifeboat",
            ),
            (
                "feed; release|free: release of; film|videotape; touch|stroke",
                "a dolphin; a shark; a whale; a sea turtle; a salmon; crabs; an octopus; a seal; "
                "a penguin; a jellyfish",
            ),
        ),
    ),
)


PUBLIC_LIFE = (
    DomainWords(
        name="construction",
        agent_type="person",
        agents=(
            "builder|construction worker; engineer; carpenter|woodworker; painter; electrician; "
            "bricklayer|mason; architect; roofer"
        ),
        places=(
            "at a construction site|at a building site; in the city centre|in the downtown area; "
            "near the river|close to the river; on the outskirts of town|in the suburbs; in a village; "
            "along the highway|beside the highway"
        ),
        scenes=(
            (
                "build|construct|erect: construction of; demolish|tear down|knock down: demolition of; "
                "inspect|examine|check: inspection of; paint; renovate|restore: renovation of|restoration of",
                "a house; a bridge; a tower; a wall; a hotel; a fence; a barn; a dam; a garage; a staircase",
            ),
            (
                "carry|haul|lug; lift|hoist; stack|pile up; cut; measure: measurement of",
                "planks|boards; bricks; pipes|tubes; steel beams|iron girders; stones|rocks; "
                "some timber|some lumber; tiles; logs",
            ),
        ),
    ),
    DomainWords(
        name="medicine",
        agent_type="person",
        agents=(
            "doctor|physician; nurse; surgeon; paramedic; dentist; medical student; midwife; psychiatrist"
        ),
        places=(
            "in a hospital|in a medical center; in an ambulance; "
            "in the emergency room|in the casualty department; in a nursing home|in a care home; "
            "at a health clinic; in a refugee camp"
        ),
        scenes=(
            (
                "examine|check: examination of; treat: treatment of; "
                "vaccinate|inoculate|immunize: vaccination of|inoculation of; "
                "comfort|console; discharge: discharge of",
                "a patient|a sick person; a baby|an infant; a pregnant woman|an expectant mother; "
                "an accident victim|a crash victim; a toddler; a pensioner|a senior citizen; a newborn; "
                "a disabled veteran",
            ),
            (
                "prescribe: prescription of; test|try out: testing of; order; store|stockpile; "
                "administer|give: administration of",
                "a drug|a medicine; a vaccine; antibiotics; painkillers|analgesics; an ointment|a salve; "
                "some insulin; vitamins; a sedative|a tranquilizer",
            ),
        ),
    ),
    DomainWords(
        name="education",
        agent_type="person",
        agents=(
            "teacher|schoolteacher; student|pupil; professor|lecturer; librarian; headmaster|principal; tutor"
        ),
        places=(
            "in a classroom|in a schoolroom; in the library|in the reading room; "
            "at a university|at a college; in the lecture hall; in the schoolyard|in the playground; "
            "at a desk; in a dormitory"
        ),
        scenes=(
            (
                "read|study; write|author; borrow; translate: translation of; copy; publish: publication of",
                "a book; a novel; a poem; an essay|a paper; a letter; a textbook|a schoolbook; "
                "a story|a tale; a dictionary; a diary|a journal; a biography",
            ),
            (
                "explain: explanation of; attend; cancel|call off: cancellation of; "
                "prepare|plan: preparation of; skip|miss",
                "a lesson; a lecture|a talk; an exam|an examination; a course; an experiment; "
                "a seminar|a workshop; a field trip|a school excursion; a graduation ceremony",
            ),
        ),
    ),
    DomainWords(
        name="politics",
        agent_type="person",
        agents=(
            "minister|cabinet minister; president|head of state; senator; mayor; diplomat|envoy; "
            "lawmaker|legislator; governor; chancellor"
        ),
        places=(
            "in parliament|in the legislature; in the capital|in the capital city; "
            "at a summit|at a top-level meeting; at a press conference|at a news conference; in Brussels; "
            "in Geneva; in Washington; in Moscow"
        ),
        scenes=(
            (
                "approve|endorse|back: approval of; reject|turn down: rejection of; sign: signing of; "
                "criticize|condemn|denounce: criticism of|condemnation of; discuss|debate: discussion of; "
                "delay|postpone: delay of|postponement of",
                "a law; a treaty|an accord|a pact; a budget|a spending plan; a tax cut|a tax reduction; "
                "a ceasefire|a truce; an education reform; a referendum; sanctions; a peace plan; "
                "a constitution",
            ),
            (
                "meet; appoint: appointment of; dismiss|fire|sack: dismissal of; praise|commend: praise of; "
                "accuse: accusation of",
                "an adviser|an aide; a judge; a spokesman|a spokesperson; a general|an army chief; "
                "an opposition leader; a journalist|a reporter; a union leader; a bishop; "
                "a central banker",
            ),
        ),
    ),
    DomainWords(
        name="business",
        agent_type="organisation",
        agents=(
            "company|firm|corporation; bank|lender; retailer|store chain; car maker|automaker; "
            "airline; startup; investor; insurer|insurance company"
        ),
        places=(
            "in Europe; in Asia; in China; in London; in the United States|in America; in Japan; "
            "in Africa; in the region|in the area"
        ),
        scenes=(
            (
                "buy|purchase|acquire: purchase of|acquisition of; sell: sale of; "
                "close|shut down: closure of; open: opening of; expand|enlarge: expansion of",
                "a factory|a plant; a supermarket|a grocery store; a mine; an oil field; a shipyard; "
                "a warehouse|a depot; a newspaper; a call center; a power station",
            ),
            (
                "report|announce: announcement of; expect|forecast|predict: forecast of|prediction of; "
                "deny: denial of; hide|conceal: concealment of",
                "a profit; a loss; a merger; a dividend; a price rise|a price increase; "
                "job cuts|layoffs; a takeover bid; a bankruptcy",
            ),
            (
                "launch|introduce|unveil: launch of|introduction of; "
                "recall|withdraw: recall of|withdrawal of; "
                "produce|manufacture: production of|manufacture of; "
                "test|try out: testing of; export: export of",
                "a smartphone|a mobile phone; a laptop|a notebook computer; electric cars|electric vehicles; "
                "a tablet; washing machines; a video game; batteries; a sports watch",
            ),
        ),
    ),
    DomainWords(
        name="crime",
        agent_type="person",
        agents=(
            "police officer|policeman|cop; detective|investigator; security guard; "
            "border guard; special agent|secret agent; soldier|trooper; sheriff"
        ),
        places=(
            "outside a bank; in a jewelry store; outside a nightclub|outside a club; at the airport; "
            "in a prison|in a jail; in an apartment|in a flat; near the border|close to the border; "
            "in a parking lot|in a car park"
        ),
        scenes=(
            (
                "arrest|detain|apprehend: arrest of|detention of; "
                "question|interrogate: questioning of|interrogation of; "
                "chase|run after|pursue: pursuit of; shoot|gun down: shooting of; "
                "identify: identification of; release|free: release of",
                "a suspect; a burglar; a drug dealer|a drug trafficker; a smuggler; "
                "a protester|a demonstrator; a gang member|a gangster; a hacker; a murderer|a killer; "
                "a fugitive; a pickpocket",
            ),
            (
                "seize|confiscate: seizure of|confiscation of; examine|inspect: examination of; "
                "steal: theft of; hide|conceal: concealment of; photograph; destroy: destruction of",
                "a gun|a firearm; some cocaine; some cash|some money; diamonds; a painting; a knife; "
                "a bomb|an explosive device; a passport; a safe|a strongbox; cigarettes",
            ),
        ),
    ),
    DomainWords(
        name="science",
        agent_type="person",
        agents=(
            "scientist|researcher; astronomer; astronaut; biologist; chemist; physicist; "
            "technician|lab assistant; explorer"
        ),
        places=(
            "in the laboratory|in the lab; at an observatory; on an expedition|on a research trip; "
            "in Antarctica|at the South Pole; in the desert; in the rainforest|in the jungle; "
            "at a research center|at a research institute"
        ),
        scenes=(
            (
                "discover: discovery of; study|investigate|examine: study of|investigation of; "
                "photograph; describe: description of",
                "a comet; a planet; a galaxy; a fossil; a dinosaur skeleton; a virus; a new species; "
                "a gene; a volcano; a meteorite; an asteroid",
            ),
            (
                "test|try out: testing of; install|set up: installation of; repair|fix|mend: repair of; "
                "operate: operation of; switch off|turn off",
                "a telescope; a satellite; a rocket; a robot; a microscope; a space probe|a spacecraft; "
                "a laser; solar panels; a supercomputer; a particle detector",
            ),
        ),
    ),
)
