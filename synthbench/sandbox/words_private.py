"""Domains of private life."""

from synthbench.sandbox.words_shared import DomainWords

DOMAINS = (
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
